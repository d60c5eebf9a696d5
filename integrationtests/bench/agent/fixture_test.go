package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/fairlead-dev/fairlead/integrationtests/stack/pair"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// load is bundles of ConfigMaps that all hold one value.
type load struct {
	name             string
	bundles, objects int
}

// subject labels the ConfigMaps of a load.
const subject = "bench"

func (l load) bundle(i int) string { return fmt.Sprintf("%s-%03d", l.name, i) }

func (l load) object(bundle, i int) string { return fmt.Sprintf("%s-%03d-%d", l.name, bundle, i) }

func (l load) total() int { return l.bundles * l.objects }

// store puts the contents on the hub and returns the deployments.
func (l load) store(t testing.TB, p *pair.Pair, value string) []*fleet.BundleDeployment {
	t.Helper()
	all := make([]*fleet.BundleDeployment, l.bundles)
	each(t, l.bundles, atOnce, func(ctx context.Context, i int) (err error) {
		var manifests strings.Builder
		for j := range l.objects {
			fmt.Fprintf(&manifests, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  labels: {%s: %s}\ndata: {value: %q}\n",
				l.object(i, j), subject, l.name, value)
		}
		all[i], err = p.Store(ctx, pair.Bundle{
			Name: l.bundle(i), Files: map[string]string{"objects.yaml": manifests.String()},
			Options: fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true}},
		})
		return err
	})
	return all
}

// values waits until so many of the load's objects hold a value.
func (l load) values(t testing.TB, p *pair.Pair, count int, value string) func() time.Time {
	return await(t, l.objectsOf(p), &corev1.ConfigMap{}, count, func(object any, deleted bool) bool {
		configMap, ok := object.(*corev1.ConfigMap)
		return ok && !deleted && configMap.Data["value"] == value
	})
}

// gone waits until so many of the load's objects are deleted.
func (l load) gone(t testing.TB, p *pair.Pair, count int) func() time.Time {
	return await(t, l.objectsOf(p), &corev1.ConfigMap{}, count, func(_ any, deleted bool) bool { return deleted })
}

func (l load) objectsOf(p *pair.Pair) cache.ListerWatcher {
	return labelled(p, "configmaps", subject+"="+l.name)
}

func labelled(p *pair.Pair, resource, selector string) cache.ListerWatcher {
	client := p.Member.Clients().CoreV1().RESTClient()
	return cache.NewFilteredListWatchFromClient(client, resource, p.Target, func(options *metav1.ListOptions) { options.LabelSelector = selector })
}

// settled waits until the hub says of all deployments that they are applied and ready.
func settled(t testing.TB, p *pair.Pair, deployments []*fleet.BundleDeployment) func() time.Time {
	ids := map[string]string{}
	for _, deployment := range deployments {
		ids[deployment.Name] = deployment.Spec.DeploymentID
	}
	return await(t, p.ListWatch(), &fleet.BundleDeployment{}, len(deployments), func(object any, _ bool) bool {
		deployment, ok := object.(*fleet.BundleDeployment)
		return ok && ids[deployment.Name] != "" && pair.Settled(deployment, ids[deployment.Name])
	})
}

// recordsGone waits until so many release records are deleted.
func recordsGone(t testing.TB, p *pair.Pair, count int) func() time.Time {
	return await(t, labelled(p, "secrets", "owner=helm"), &corev1.Secret{}, count, func(_ any, deleted bool) bool { return deleted })
}

// await watches objects, and returns a function that waits until so many of them were as wanted, and returns
// when that was.
func await(t testing.TB, from cache.ListerWatcher, kind runtime.Object, count int, wanted func(object any, deleted bool) bool) func() time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	var (
		mu    sync.Mutex
		found = map[string]bool{}
		done  = make(chan time.Time, 1)
	)
	look := func(object any, deleted bool) {
		name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		mu.Lock()
		defer mu.Unlock()
		if err != nil || found[name] || !wanted(object, deleted) {
			return
		}
		found[name] = true
		if len(found) == count {
			done <- time.Now()
		}
	}
	informer := cache.NewSharedInformer(from, kind, 0)
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { look(object, false) },
		UpdateFunc: func(_, object any) { look(object, false) },
		DeleteFunc: func(object any) { look(object, true) },
	})
	if err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		t.Fatal("cannot list what is waited for")
	}
	return func() time.Time {
		t.Helper()
		defer cancel()
		select {
		case at := <-done:
			return at
		case <-ctx.Done():
			t.Fatalf("%d of %d are as wanted after %s", len(found), count, patience)
			return time.Time{}
		}
	}
}

// atOnce is how many writers the floor has, and how many deployments are written at a time: one a bundle.
const atOnce = 20

// floor makes the same objects by plain server-side apply, and of every bundle a Secret as large as a release
// record, which is created and then updated as often as Helm does: once for a new release, and for a
// change also the one before. Unlike the agent it looks at nothing. It returns how long that took.
func (l load) floor(t testing.TB, clients kubernetes.Interface, namespace, value string, updates int) time.Duration {
	t.Helper()
	maps, secrets := clients.CoreV1().ConfigMaps(namespace), clients.CoreV1().Secrets(namespace)
	began := time.Now()
	each(t, l.bundles, atOnce, func(ctx context.Context, bundle int) error {
		record := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("floor.%s.%s", l.bundle(bundle), value), Labels: map[string]string{"owner": "floor"}},
			Data:       map[string][]byte{"release": []byte(strings.Repeat("H4sIAAAA", recordSize/8))},
		}
		if _, err := secrets.Create(ctx, record, metav1.CreateOptions{}); err != nil {
			return err
		}
		for i := range l.objects {
			data, err := json.Marshal(l.plain(bundle, i, namespace, value))
			if err != nil {
				return err
			}
			_, err = maps.Patch(ctx, l.object(bundle, i), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "floor", Force: ptr.To(true)})
			if err != nil {
				return err
			}
		}
		for i := range updates {
			record.Labels["status"] = fmt.Sprint(i)
			if _, err := secrets.Update(ctx, record, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	return time.Since(began)
}

// recordSize is that of a release of ten such ConfigMaps, in bytes.
const recordSize = 1800

// plain is an object as the agent applies it, marks included.
func (l load) plain(bundle, i int, namespace, value string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": l.object(bundle, i), "namespace": namespace,
			"labels": map[string]any{
				subject: l.name, "app.kubernetes.io/managed-by": "floor", "hash": strings.Repeat("0", 40),
			},
			"annotations": map[string]any{
				"a": l.bundle(bundle), "b": namespace, "c": l.bundle(bundle),
			},
		},
		"data": map[string]any{"value": value},
	}
}
