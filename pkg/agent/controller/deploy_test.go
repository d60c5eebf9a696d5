package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

func TestLifeOfABundle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.put("pantry", bundle{files: map[string]string{
		"a.yaml": configMap("flour", "kg", "1") + "---\n" + configMap("salt", "kg", "2"),
	}})
	deployed := w.until("pantry", fleet.Ready)
	if deployed.Status.AppliedDeploymentID != id {
		t.Errorf("applied id %q, want %q", deployed.Status.AppliedDeploymentID, id)
	}
	if want := w.target + "/pantry:1"; deployed.Status.Release != want {
		t.Errorf("release %q, want %q", deployed.Status.Release, want)
	}
	wantCounts := fleet.ResourceCounts{Ready: 2, DesiredReady: 2}
	if diff := cmp.Diff(wantCounts, deployed.Status.ResourceCounts); diff != "" {
		t.Error(diff)
	}
	if display := deployed.Status.Display; display.Deployed != "True" || display.Monitored != "True" || display.State != "Ready" {
		t.Errorf("display %+v", display)
	}
	if len(deployed.Status.Resources) != 2 || deployed.Status.Resources[0].Name != "flour" {
		t.Errorf("resources %+v", deployed.Status.Resources)
	}
	flour, err := w.configMap("flour")
	if err != nil {
		t.Fatal(err)
	}
	if flour.Labels[fleet.SetHashLabel] == "" || flour.Annotations["meta.helm.sh/release-name"] != "pantry" {
		t.Errorf("marks: labels %v, annotations %v", flour.Labels, flour.Annotations)
	}

	w.put("pantry", bundle{files: map[string]string{"a.yaml": configMap("flour", "bags", "3")}})
	w.until("pantry", fleet.Ready)
	w.untilGone("salt")
	changed, err := w.configMap("flour")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"bags": "3"}, changed.Data); diff != "" {
		t.Error(diff)
	}
	if changed.UID != flour.UID {
		t.Error("the object was created anew")
	}

	w.delete("pantry")
	w.untilGone("flour")
	w.untilNoRecords("pantry")
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, value := range []string{"1", "2", "3", "4"} {
		w.put("jars", bundle{files: map[string]string{"a.yaml": configMap("jar", "n", value)}})
		w.until("jars", fleet.Ready)
	}
	if got := w.revisions("jars"); len(got) != 2 {
		t.Errorf("%d revisions are kept, want 2: %v", len(got), got)
	}
}

func TestHelmChartWithValuesAndHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	chart := map[string]string{
		"Chart.yaml":             "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
		"values.yaml":            "color: red\n",
		"templates/a.yaml":       configMap("sign", "color", "{{ .Values.color }}", "from", "{{ .Values.member }}"),
		"templates/hook.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: opened\n  annotations:\n    helm.sh/hook: post-install\ndata: {at: \"{{ .Release.Revision }}\"}\n",
		"templates/job-job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: prepare\n  annotations:\n    helm.sh/hook: pre-install,pre-upgrade\n    helm.sh/hook-delete-policy: hook-succeeded,before-hook-creation\nspec:\n  template:\n    metadata: {annotations: {}}\n    spec:\n      restartPolicy: Never\n      containers: [{name: a, image: none}]\n",
	}
	w.member.Clients().CoreV1().ConfigMaps(w.target).Create(t.Context(), newConfigMap("local", "values.yaml", "member: here\n"), metav1.CreateOptions{})
	options := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{ValuesFrom: []fleet.ValuesFrom{{
		ConfigMapKeyRef: &fleet.ConfigMapKeySelector{LocalObjectReference: fleet.LocalObjectReference{Name: "local"}},
	}}}}
	w.put("shop", bundle{files: chart, options: options, values: map[string]any{"color": "blue"}})
	w.until("shop", fleet.Ready)
	sign, err := w.configMap("sign")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"color": "blue", "from": "here"}, sign.Data); diff != "" {
		t.Error(diff)
	}
	if _, err := w.configMap("opened"); err != nil {
		t.Errorf("post-install hook: %v", err)
	}
	if _, err := w.memberClients().BatchV1().Jobs(w.target).Get(t.Context(), "prepare", metav1.GetOptions{}); err == nil {
		t.Error("the job of the pre-install hook is still there")
	}
}

// Definitions and their resources in one bundle, a namespace behind what lives in it.
func TestOrderInsideABundle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	group := strings.ReplaceAll(w.target, "-", "") + ".example.com"
	w.put("order", bundle{files: map[string]string{
		"aa.yaml": "apiVersion: " + group + "/v1\nkind: Jar\nmetadata: {name: first}\nspec: {n: 1}\n---\n" +
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: inside, namespace: " + w.target + "-late}\n",
		"zz.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + w.target + "-late}\n---\n" + definition(group),
	}})
	ready := w.until("order", fleet.Ready)
	if got := ready.Status.Release; !strings.HasSuffix(got, ":1") {
		t.Errorf("release %s: it took more than one attempt", got)
	}

	// A definition that gets a field, and the resource that uses it: the watch from before does not know the field.
	grown := strings.Replace(definition(group), "{n: {type: integer}}", "{n: {type: integer}, lid: {type: string}}", 1)
	next := map[string]string{
		"aa.yaml": "apiVersion: " + group + "/v1\nkind: Jar\nmetadata: {name: first}\nspec: {n: 1, lid: red}\n",
		"zz.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + w.target + "-late}\n---\n" + grown,
	}
	w.put("order", bundle{files: next})
	ready = w.until("order", fleet.Ready)
	if got := ready.Status.Release; !strings.HasSuffix(got, ":2") {
		t.Errorf("release %s: it took more than one attempt", got)
	}
	// Nor is a change of the field hidden.
	next["aa.yaml"] = strings.Replace(next["aa.yaml"], "red", "blue", 1)
	w.put("order", bundle{files: next, options: fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true}}})
	w.until("order", fleet.Ready)
	w.kubectl("patch", "jar."+group, "first", "-n", w.target, "--type=merge", "-p", `{"spec":{"lid":"green"}}`)
	kubetest.Eventually(t, "the new field is restored", func(ctx context.Context) error {
		lid, err := w.member.Kubectl(ctx, nil, "get", "jar."+group, "first", "-n", w.target, "-o", "jsonpath={.spec.lid}")
		if err == nil && lid != "blue" {
			err = fmt.Errorf("lid %s", lid)
		}
		return err
	})
}

func TestRefusesWhatBelongsToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("first", bundle{files: map[string]string{"a.yaml": configMap("shared", "from", "first")}})
	w.until("first", fleet.Ready)
	w.put("second", bundle{files: map[string]string{"a.yaml": configMap("shared", "from", "second")}})
	refused := w.until("second", fleet.ErrApplied)
	if message := status.MessageOf(refused); !strings.Contains(message, "first") || !strings.Contains(message, "shared") {
		t.Errorf("message does not name object and owner: %s", message)
	}
	if shared, err := w.configMap("shared"); err != nil || shared.Data["from"] != "first" {
		t.Errorf("the object was touched: %v, %v", shared, err)
	}

	if _, err := w.memberClients().CoreV1().ConfigMaps(w.target).Create(t.Context(), newConfigMap("lone", "x", "1"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.memberClients().CoreV1().Secrets(w.target).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "alone"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"a.yaml": configMap("lone", "x", "2") + "---\n" + configMap("fresh", "x", "2") + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: alone}\n"}
	w.put("third", bundle{files: files})
	refused = w.until("third", fleet.ErrApplied)
	// All that is in the way is named at once, and nothing behind it is written.
	message := status.MessageOf(refused)
	for _, want := range []string{"takeOwnership", "2 objects", "ConfigMap " + w.target + "/lone", "Secret " + w.target + "/alone"} {
		if !strings.Contains(message, want) {
			t.Errorf("message %q lacks %q", message, want)
		}
	}
	if _, err := w.configMap("fresh"); !apierrors.IsNotFound(err) {
		t.Errorf("an object of the refused release was written: %v", err)
	}
	w.put("third", bundle{files: files, options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{TakeOwnership: true}}})
	w.until("third", fleet.Ready)
	// Nothing of the other's goes with the refused.
	w.delete("second")
	w.until("first", fleet.Ready)
}

func TestKeepResources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("kept", bundle{files: map[string]string{"a.yaml": configMap("stays", "a", "1")}, options: fleet.BundleDeploymentOptions{KeepResources: true}})
	w.until("kept", fleet.Ready)
	w.delete("kept")
	w.untilNoRecords("kept")
	if _, err := w.configMap("stays"); err != nil {
		t.Error(err)
	}

	// What was kept is nobody's: another bundle may have it if it asks for it.
	heir := bundle{files: map[string]string{"a.yaml": configMap("stays", "a", "2")}}
	w.put("heir", heir)
	refused := w.until("heir", fleet.ErrApplied)
	if message := status.MessageOf(refused); !strings.Contains(message, "stays") || !strings.Contains(message, "takeOwnership") {
		t.Errorf("message %q", message)
	}
	heir.options.Helm = &fleet.HelmOptions{TakeOwnership: true}
	w.put("heir", heir)
	w.until("heir", fleet.Ready)
	w.delete("heir")
	w.untilGone("stays")
}
