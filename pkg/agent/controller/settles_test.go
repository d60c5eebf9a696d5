package controller_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// corpusSize is the least number of bundles that the corpus has.
const corpusSize = 34

// corpus returns the bundles of testdata/corpus as they are at a step, by name.
func corpus(t *testing.T, unique, target, step string) map[string]map[string]string {
	t.Helper()
	const root, second = "testdata/corpus", "second"
	fill := strings.NewReplacer("NAME", unique, "TARGET", target, "STEP", step)
	bundles, replaced := map[string]map[string]string{}, map[string]map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name, file, isBundle := strings.Cut(filepath.ToSlash(relative), "/")
		if !isBundle {
			return nil // about the corpus
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		into := bundles
		if rest, found := strings.CutPrefix(file, second+"/"); found {
			into, file = replaced, rest
		}
		if into[name] == nil {
			into[name] = map[string]string{}
		}
		into[name][file] = fill.Replace(string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if step == "2" {
		for name, files := range replaced {
			maps.Copy(bundles[name], files)
		}
	}
	if len(bundles) < corpusSize {
		t.Fatalf("the corpus has %d bundles", len(bundles))
	}
	return bundles
}

// Healthy charts and manifests are Ready at the first attempt and stay so, whatever defaults, controllers,
// injectors and autoscalers do to them, without any comparePatches; and so is what follows on them.
func TestCorpusSettles(t *testing.T) {
	w := newWorld(t)
	unique := strings.ReplaceAll(w.target, "-", "")
	first := corpus(t, unique, w.target, "1")
	for name, files := range first {
		w.put(name, bundle{files: files})
	}
	w.expectSettled(slices.Sorted(maps.Keys(first)), 1)
	w.meddle(unique)

	// Without memory, as after a restart, everything is compared anew.
	w.stop()
	w.start()
	second := corpus(t, unique, w.target, "2")
	ids := map[string]string{}
	for name, files := range second {
		ids[name] = w.put(name, bundle{files: files})
	}
	for name, id := range ids {
		w.untilTrue(name, "is deployed again", func(d *fleet.BundleDeployment) bool { return d.Status.AppliedDeploymentID == id })
	}
	names := slices.Sorted(maps.Keys(second))
	w.expectSettled(names, 2)
	w.stop()
	w.start()
	settle := time.NewTimer(4 * time.Second) // long enough to compare everything again
	<-settle.C
	w.expectSettled(names, 2)
	w.expectMeddling(unique)
}

// expectSettled waits until bundles are Ready with a revision of their release.
func (w *world) expectSettled(names []string, revision int) {
	w.t.Helper()
	kubetest.Eventually(w.t, "all bundles are Ready", func(context.Context) error {
		var missing []error
		for _, name := range names {
			if d := w.get(name); status.Of(d) != fleet.Ready || d.Status.Display.State != string(fleet.Ready) {
				ready := status.Find(d.Status.Conditions, fleet.ConditionReady)
				missing = append(missing, fmt.Errorf("%s is %s: %+v", name, status.Of(d), ready))
			}
		}
		return errors.Join(missing...)
	})
	for _, name := range names {
		ready := w.get(name)
		if want := fmt.Sprintf("%s/%s:%d", w.target, name, revision); ready.Status.Release != want {
			w.t.Errorf("release %s, want %s: it took more than one attempt", ready.Status.Release, want)
		}
		if text, _ := json.Marshal(ready.Status.ModifiedStatus); len(ready.Status.ModifiedStatus)+len(ready.Status.ComparePatches) > 0 {
			w.t.Errorf("%s is modified: %s", name, text)
		}
	}
}

// meddle does what others do on a healthy cluster.
func (w *world) meddle(unique string) {
	w.t.Helper()
	ctx, clients := w.t.Context(), w.memberClients()
	inject := func(what string, err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatalf("inject an authority into %s: %v", what, err)
		}
	}
	by := metav1.PatchOptions{FieldManager: "injector"}
	authority := []byte(`[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"QUJD"}]`)
	_, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Patch(ctx, unique+"-injected", types.JSONPatchType, authority, by)
	inject("a validating webhook", err)
	_, err = clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(ctx, unique+"-injected", types.JSONPatchType, authority, by)
	inject("a mutating webhook", err)
	_, err = w.member.Kubectl(ctx, nil, "patch", "crd", "jars.conv."+unique+".example.com", "--type=json", "--field-manager=injector",
		`--patch=[{"op":"add","path":"/spec/conversion/webhook/clientConfig/caBundle","value":"`+base64.StdEncoding.EncodeToString(w.member.CA())+`"}]`)
	inject("a conversion webhook", err)

	// An operator's child has the labels of its parent, ours among them, and no owner.
	parent, err := w.configMap("parent")
	if err != nil {
		w.t.Fatal(err)
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "parent-child", Labels: parent.Labels}}
	if _, err := clients.CoreV1().ConfigMaps(w.target).Create(ctx, child, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	kubetest.Eventually(w.t, "the job is removed by its time to live", func(ctx context.Context) error {
		_, err := clients.BatchV1().Jobs(w.target).Get(ctx, "brief", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	})
	kubetest.Eventually(w.t, "the autoscalers have scaled", func(ctx context.Context) error {
		for _, name := range []string{"elastic", "elastic-free"} {
			scaled, err := clients.AppsV1().Deployments(w.target).Get(ctx, name, metav1.GetOptions{})
			if err != nil || *scaled.Spec.Replicas != 2 {
				return errors.Join(fmt.Errorf("%s has not two replicas", name), err)
			}
		}
		return nil
	})
}

// expectMeddling says that what others did is still there.
func (w *world) expectMeddling(unique string) {
	w.t.Helper()
	ctx, clients := w.t.Context(), w.memberClients()
	hook, err := clients.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, unique+"-injected", metav1.GetOptions{})
	if err != nil || string(hook.Webhooks[0].ClientConfig.CABundle) != "ABC" {
		w.t.Errorf("the injected authority was taken away: %v", err)
	}
	if _, err := clients.BatchV1().Jobs(w.target).Get(ctx, "brief", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		w.t.Errorf("a job that had run and gone was run again: %v", err)
	}
	if _, err := w.configMap("parent-child"); err != nil {
		w.t.Errorf("an operator's child is gone: %v", err)
	}
	scaled, err := clients.AppsV1().Deployments(w.target).Get(ctx, "elastic", metav1.GetOptions{})
	if err != nil || *scaled.Spec.Replicas != 2 {
		w.t.Errorf("the autoscaler's replicas were taken back: %v", err)
	}
}
