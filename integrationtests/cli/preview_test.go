package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func (h *hub) cluster(t *testing.T, namespace, name string) {
	t.Helper()
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"env": name}}}
	cluster.Status.Namespace = "cluster-" + namespace + "-" + name
	h.create(t, cluster)
}

func TestTargetUsesTheHubsClusters(t *testing.T) {
	h := getHub(t)
	mapped := h.namespace + "-mapped"
	if err := h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: mapped, Labels: map[string]string{"open": h.namespace}}}); err != nil {
		t.Fatal(err)
	}
	h.cluster(t, h.namespace, "prod")
	h.cluster(t, mapped, "far")
	dir := repository(t, shop())
	targets := write(t, dir, "targets.yaml", "targets: [{clusterSelector: {}}]\n")
	file := dir + "/bundle.yaml"
	h.must(t, "apply", "shop", "web", "--targets-file", targets, "-o", file)
	got := h.must(t, "target", "-b", file)
	wantText(t, got.out, "fleet.cattle.io/cluster: prod\n")
	wantText(t, got.out, "color: blue\n")
	if strings.Contains(got.out, "cluster: far") {
		t.Error("a cluster of a namespace that is not mapped is reached")
	}
	mapping := &fleet.BundleNamespaceMapping{
		ObjectMeta:        metav1.ObjectMeta{Namespace: h.namespace, Name: "open"},
		BundleSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{fleet.RepoLabel: "shop"}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"open": h.namespace}},
	}
	if err := h.Create(t.Context(), mapping); err != nil {
		t.Fatal(err)
	}
	got = h.must(t, "target", "-b", file, "-l")
	wantText(t, got.out, "fleet.cattle.io/cluster: far\n")
	wantText(t, got.errOut, "kind: BundleNamespaceMapping\n")
}

func TestDeployInstallsTheRelease(t *testing.T) {
	h := getHub(t)
	dir := repository(t, shop())
	clusters := write(t, dir, "clusters.yaml", "apiVersion: fleet.cattle.io/v1alpha1\nkind: Cluster\nmetadata: {name: prod}\n")
	targets := write(t, dir, "targets.yaml", "targets: [{clusterSelector: {}}]\n")
	h.must(t, "apply", "shop", "web", "--targets-file", targets, "-o", dir+"/bundle.yaml")
	input := write(t, dir, "deploy.yaml", h.must(t, "target", "-b", dir+"/bundle.yaml", "--clusters", clusters).out)
	got := h.must(t, "deploy", "-i", input)
	wantText(t, got.out, "kind: ConfigMap\n")
	var applied corev1.ConfigMap
	if err := h.Get(t.Context(), client.ObjectKey{Namespace: h.namespace, Name: "web"}, &applied); err != nil {
		t.Fatal(err)
	}
	if applied.Data["color"] != "blue" {
		t.Errorf("color %q on the member, want blue", applied.Data["color"])
	}
	var releases corev1.SecretList
	if err := h.List(t.Context(), &releases, client.InNamespace(h.namespace), client.MatchingLabels{"owner": "helm", "name": "web"}); err != nil {
		t.Fatal(err)
	}
	if len(releases.Items) != 1 {
		t.Errorf("%d revisions of the release, want 1", len(releases.Items))
	}
}
