package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

const (
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: b}\n"
	withChart = "helm:\n  releaseName: web\n  values: {color: red}\ntargetCustomizations:\n- name: prod\n  clusterName: prod\n  helm: {values: {color: blue}}\n"
	chart     = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
	template  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {color: {{ .Values.color }}}\n"
)

func shop() map[string]string {
	return map[string]string{
		"raw/one.yaml":   configMap,
		"web/fleet.yaml": withChart, "web/Chart.yaml": chart, "web/templates/cm.yaml": template,
	}
}

func (h *hub) bundleNames(t *testing.T) []string {
	t.Helper()
	var list fleet.BundleList
	if err := h.List(t.Context(), &list, client.InNamespace(h.namespace)); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, bundle := range list.Items {
		names = append(names, bundle.Name)
	}
	slices.Sort(names)
	return names
}

func (h *hub) bundle(t *testing.T, name string) *fleet.Bundle {
	t.Helper()
	var bundle fleet.Bundle
	if err := h.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: name}, &bundle); err != nil {
		t.Fatal(err)
	}
	return &bundle
}

func TestApplyWritesBundlesAndValues(t *testing.T) {
	h := getHub(t)
	repository(t, shop())
	got := h.must(t, "apply", "shop", "raw", "web", "--commit", "abc", "--label", "team=a")
	if got.out != "" {
		t.Errorf("apply printed %q on standard output, want nothing", got.out)
	}
	wantText(t, got.errOut, "bundle "+h.namespace+"/shop-web created")
	bundle := h.bundle(t, "shop-web")
	want := map[string]string{"team": "a", fleet.RepoLabel: "shop", fleet.CommitLabel: "abc"}
	if !maps.Equal(bundle.Labels, want) {
		t.Errorf("labels %v, want %v", bundle.Labels, want)
	}
	var secret corev1.Secret
	if err := h.Get(t.Context(), client.ObjectKeyFromObject(bundle), &secret); err != nil {
		t.Fatal(err)
	}
	if secret.Type != fleet.BundleValuesSecretType {
		t.Errorf("the Secret has type %s", secret.Type)
	}
	inlined, err := target.Inline(bundle, secret.Data)
	if err != nil {
		t.Fatalf("the values do not fit the Bundle: %v", err)
	}
	if color := inlined.Spec.Helm.Values.Data["color"]; color != "red" {
		t.Errorf("color %v, want red", color)
	}
	if inlined.Spec.Targets[0].Helm.Values.Data["color"] != "blue" {
		t.Errorf("customization %+v, want blue", inlined.Spec.Targets[0].Helm)
	}
}

func TestApplyAgainWritesNothing(t *testing.T) {
	h := getHub(t)
	dir := repository(t, shop())
	start, err := h.kube.MutatingRequests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.must(t, "apply", "shop", "raw", "web", "--commit", "abc")
	var before writes.Requests
	kubetest.Eventually(t, "two bundles and a Secret are counted", func(ctx context.Context) (err error) { // a moment after the answers
		if before, err = h.kube.MutatingRequests(ctx); err != nil {
			return err
		}
		bundles, secrets := before.Since(start).Only(writes.InGroup(fleet.GroupVersion.Group)), before.Since(start).Only(writes.OnResource("", "secrets"))
		if bundles.Total() != 2 || secrets.Total() != 1 {
			return fmt.Errorf("%s\n%s", bundles, secrets)
		}
		return nil
	})
	// Another commit that does not touch the bundles is no reason to write.
	got := h.must(t, "apply", "shop", "raw", "web", "--commit", "def")
	after, err := h.kube.MutatingRequests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range []func(writes.Request) bool{writes.InGroup(fleet.GroupVersion.Group), writes.OnResource("", "secrets")} {
		if wrote := after.Since(before).Only(resource); wrote.Total() > 0 {
			t.Errorf("applying again wrote %s", wrote)
		}
	}
	if got.errOut != "" {
		t.Errorf("applying again said %q", got.errOut)
	}
	write(t, dir, "web/fleet.yaml", strings.Replace(withChart, "red", "green", 1))
	got = h.must(t, "apply", "shop", "raw", "web", "--commit", "ghi")
	if got.errOut != "bundle "+h.namespace+"/shop-web configured\n" {
		t.Errorf("a change of one bundle said %q", got.errOut)
	}
	write(t, dir, "web/fleet.yaml", "helm: {releaseName: web}\n")
	h.must(t, "apply", "shop", "raw", "web")
	var secret corev1.Secret
	err = h.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "shop-web"}, &secret)
	if !apierrors.IsNotFound(err) {
		t.Errorf("values that are gone left their Secret: %v", err)
	}
}

func TestApplyPrunesOnlyWhenEverythingWasRead(t *testing.T) {
	h := getHub(t)
	dir := repository(t, shop())
	h.must(t, "apply", "shop", "raw", "web")
	h.must(t, "apply", "other", "raw")
	got := h.must(t, "apply", "shop", "raw", "nowhere")
	wantText(t, got.errOut, "nothing is removed")
	all := []string{"other-raw", "shop-raw", "shop-web"}
	if diff := cmp.Diff(all, h.bundleNames(t)); diff != "" {
		t.Errorf("a path that matches nothing (-want +got):\n%s", diff)
	}
	write(t, dir, "web/fleet.yaml", "helm: [")
	if got := h.run(t, "apply", "shop", "web"); got.code != 1 {
		t.Errorf("a broken fleet.yaml gives exit code %d, want 1", got.code)
	}
	if diff := cmp.Diff(all, h.bundleNames(t)); diff != "" {
		t.Errorf("a broken fleet.yaml (-want +got):\n%s", diff)
	}
	got = h.must(t, "apply", "shop", "raw")
	wantText(t, got.errOut, "bundle "+h.namespace+"/shop-web deleted")
	if diff := cmp.Diff([]string{"other-raw", "shop-raw"}, h.bundleNames(t)); diff != "" {
		t.Errorf("after pruning (-want +got):\n%s", diff)
	}
}

func TestApplyLeavesOthersAlone(t *testing.T) {
	h := getHub(t)
	repository(t, map[string]string{"a/fleet.yaml": "name: same\n", "a/one.yaml": configMap})
	h.must(t, "apply", "first", "a")
	got := h.run(t, "apply", "second", "a")
	if got.code != 1 {
		t.Fatalf("exit code %d, want 1", got.code)
	}
	wantText(t, got.errOut, "belongs to the GitRepo first")
	if owner := h.bundle(t, "same").Labels[fleet.RepoLabel]; owner != "first" {
		t.Errorf("the bundle now belongs to %s", owner)
	}
}

func TestApplyFile(t *testing.T) {
	h := getHub(t)
	dir := repository(t, shop())
	printed := h.must(t, "apply", "shop", "raw", "-o", "-").out
	file := write(t, dir, "bundle.yaml", printed)
	h.must(t, "apply", "mine", "-f", file, "--paused", "-l", "x=y")
	bundle := h.bundle(t, "shop-raw")
	if !bundle.Spec.Paused || bundle.Labels["x"] != "y" || bundle.Labels[fleet.RepoLabel] != "mine" {
		t.Errorf("bundle %v paused %t, want the flags on it", bundle.Labels, bundle.Spec.Paused)
	}
}

func TestApplyWritesImageScans(t *testing.T) {
	h := getHub(t)
	dir := repository(t, map[string]string{
		"a/one.yaml":   configMap,
		"a/fleet.yaml": "imageScans:\n- tagName: web\n  image: example.test/web\n  interval: 5m\n  policy: {alphabetical: {order: asc}}\n",
	})
	if got := h.run(t, "apply", "scan", "a"); got.code != 1 {
		t.Errorf("image scans that are switched off give exit code %d, want 1", got.code)
	}
	h.must(t, "apply", "scan", "a", "--imagescan-enabled")
	write(t, dir, "a/fleet.yaml", "imageScans:\n- tagName: web\n  image: example.test/other\n  interval: 5m\n  policy: {alphabetical: {order: asc}}\n")
	h.must(t, "apply", "scan", "a", "--imagescan-enabled")
	var scans fleet.ImageScanList
	if err := h.List(t.Context(), &scans, client.InNamespace(h.namespace)); err != nil {
		t.Fatal(err)
	}
	if len(scans.Items) != 1 || scans.Items[0].Spec.Image != "example.test/other" {
		t.Errorf("image scans %+v, want one that was updated", scans.Items)
	}
}
