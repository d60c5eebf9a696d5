package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// fill makes a repo with a bundle that is ready on one cluster and not on the other.
func (h *hub) fill(t *testing.T) (clusterNamespace string) {
	t.Helper()
	clusterNamespace = h.namespace + "-bad"
	if err := h.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterNamespace}}); err != nil {
		t.Fatal(err)
	}
	meta := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: h.namespace, Name: name, Labels: labels}
	}
	message := "NotReady(1) [Cluster " + h.namespace + "/bad]; deployment.apps shop/web [progressing] 0 of 1 available"
	notReady := []fleet.NonReadyStatus{{Kind: "Deployment", APIVersion: "apps/v1", Namespace: "shop", Name: "web",
		Summary: fleet.ObjectSummary{State: "updating", Transitioning: true, Message: []string{"0 of 1 available"}}}}
	summary := fleet.BundleSummary{NotReady: 1, DesiredReady: 1, NonReadyResources: []fleet.NonReadyResource{
		{Name: h.namespace + "/bad", State: fleet.NotReady, NonReadyStatus: notReady}}}
	repo := &fleet.GitRepo{ObjectMeta: meta("shop", nil), Spec: fleet.GitRepoSpec{Repo: "https://git.example.test/shop", Branch: "main"}}
	repo.Status.Commit, repo.Status.Summary = "0123456789abcdef", summary
	repo.Status.Display = fleet.StatusDisplay{State: string(fleet.NotReady), Message: message}
	bundle := &fleet.Bundle{ObjectMeta: meta("shop-web", map[string]string{fleet.RepoLabel: "shop", fleet.CommitLabel: "0123456789abcdef"})}
	bundle.Status.Summary, bundle.Status.ObservedGeneration = summary, 1
	bundle.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionReady, Status: corev1.ConditionFalse, Message: message}}
	cluster := &fleet.Cluster{ObjectMeta: meta("bad", map[string]string{"env": "prod"})}
	cluster.Status.Namespace, cluster.Status.Summary = clusterNamespace, summary
	deployment := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: clusterNamespace, Name: "shop-web", Labels: map[string]string{
		fleet.BundleLabel: "shop-web", fleet.BundleNamespaceLabel: h.namespace, fleet.ClusterLabel: "bad", fleet.ClusterNamespaceLabel: h.namespace}}}
	deployment.Spec.DeploymentID, deployment.Spec.StagedDeploymentID = "s-1:1", "s-1:1"
	deployment.Status.AppliedDeploymentID, deployment.Status.NonModified, deployment.Status.NonReadyStatus = "s-1:1", true, notReady
	h.create(t, repo, bundle, cluster, deployment)
	return clusterNamespace
}

// rows returns the cells of a table without the ages.
func rows(text string) [][]string {
	var result [][]string
	for line := range strings.Lines(text) {
		result = append(result, strings.Fields(line))
	}
	return result
}

func TestGetTables(t *testing.T) {
	h := getHub(t)
	h.fill(t)
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"repos":       {[]string{"get", "repos"}, []string{"shop", "0/1", "NotReady", "01234567"}},
		"bundles":     {[]string{"get", "bundles"}, []string{"shop-web", "0/1", "NotReady", "01234567"}},
		"deployments": {[]string{"get", "deployments"}, []string{"shop-web", "bad", "NotReady"}},
		"clusters":    {[]string{"get", "clusters"}, []string{"bad", "0/1", "NotReady"}},
		"everywhere":  {[]string{"get", "repo", "-A"}, []string{h.namespace, "shop", "0/1", "NotReady"}},
		"state":       {[]string{"get", "bundles", "--state", "notready"}, []string{"shop-web", "0/1"}},
		"selector":    {[]string{"get", "clusters", "-l", "env=prod"}, []string{"bad"}},
		"name":        {[]string{"get", "bundles", "shop-web"}, []string{"shop-web"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := h.must(t, test.args...)
			for _, row := range rows(got.out) {
				if len(row) >= len(test.want) && cmp.Equal(row[:len(test.want)], test.want) {
					return
				}
			}
			t.Errorf("no row %v in:\n%s", test.want, got.out)
		})
	}
}

func TestGetFormats(t *testing.T) {
	h := getHub(t)
	h.fill(t)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"name":           {[]string{"get", "bundles", "-o", "name"}, "bundle.fleet.cattle.io/shop-web\n"},
		"jsonpath":       {[]string{"get", "repos", "shop", "-o", "jsonpath={.spec.repo}"}, "https://git.example.test/shop"},
		"jsonpath list":  {[]string{"get", "repos", "-o", "jsonpath={.items[*].metadata.name}"}, "shop"},
		"custom columns": {[]string{"get", "repos", "--no-headers", "-o", "custom-columns=N:.metadata.name,B:.spec.branch"}, "shop   main\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := h.must(t, test.args...); got.out != test.want {
				t.Errorf("printed %q, want %q", got.out, test.want)
			}
		})
	}
	var list struct {
		Kind  string
		Items []fleet.Bundle
	}
	got := h.must(t, "get", "bundles", "-o", "json")
	if err := json.Unmarshal([]byte(got.out), &list); err != nil || list.Kind != "List" || len(list.Items) != 1 || list.Items[0].Kind != "Bundle" {
		t.Errorf("json %v:\n%s", err, got.out)
	}
	wantText(t, h.must(t, "get", "repos", "-o", "wide").out, "https://git.example.test/shop")
	if out := h.must(t, "get", "repos", "--no-headers").out; strings.Contains(out, "NAME") {
		t.Errorf("headings without being asked for:\n%s", out)
	}
}

func TestGetNothing(t *testing.T) {
	h := getHub(t)
	got := h.must(t, "get", "groups")
	if got.out != "" {
		t.Errorf("printed %q", got.out)
	}
	wantText(t, got.errOut, "No groups found in namespace "+h.namespace)
	missing := h.run(t, "get", "bundles", "nothing")
	if missing.code != 1 {
		t.Errorf("exit code %d, want 1", missing.code)
	}
	wantText(t, missing.errOut, "bundles not found in namespace "+h.namespace+" (-A looks everywhere): nothing")
}

func TestGetWatches(t *testing.T) {
	h := getHub(t)
	h.fill(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out output
	done := make(chan outcome, 1)
	go func() { done <- h.runInto(ctx, &out, "get", "bundles", "-w", "-o", "name") }()
	bundle := h.bundle(t, "shop-web")
	step := 0
	kubetest.Eventually(t, "the first list and a change are printed", func(ctx context.Context) error {
		before := bundle.DeepCopy()
		step++
		metav1.SetMetaDataLabel(&bundle.ObjectMeta, "step", strconv.Itoa(step))
		if err := h.Patch(ctx, bundle, client.MergeFrom(before)); err != nil {
			return err
		}
		if n := strings.Count(out.String(), "bundle.fleet.cattle.io/shop-web\n"); n < 2 {
			return fmt.Errorf("printed %d lines:\n%s", n, out.String())
		}
		return nil
	})
	cancel()
	if got := <-done; got.code != 130 {
		t.Errorf("exit code %d after an interruption, want 130: %s", got.code, got.errOut)
	}
}

func TestStatusAndWhy(t *testing.T) {
	h := getHub(t)
	h.fill(t)
	wantTree := "GitRepo " + h.namespace + "/shop  NotReady\n" +
		"  Bundle shop-web  NotReady\n" +
		"    on " + h.namespace + "/bad  NotReady\n" +
		"      Deployment/web  NotReady  deployment.apps shop/web [progressing] 0 of 1 available\n"
	if diff := cmp.Diff(wantTree, h.must(t, "status").out); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantTree, h.must(t, "status", "gitrepo", "shop").out); diff != "" {
		t.Errorf("status of one (-want +got):\n%s", diff)
	}
	wantChain := "GitRepo " + h.namespace + "/shop is NotReady\n" +
		"because Bundle " + h.namespace + "/shop-web is NotReady\n" +
		"because BundleDeployment shop-web on " + h.namespace + "/bad is NotReady\n" +
		"because deployment.apps shop/web [progressing] 0 of 1 available\n"
	if diff := cmp.Diff(wantChain, h.must(t, "why", "repo", "shop").out); diff != "" {
		t.Errorf("why (-want +got):\n%s", diff)
	}
	wantText(t, h.must(t, "why", "deployment/shop-web").out, "0 of 1 available")
	wantText(t, h.must(t, "why", "cluster", "bad", "-o", "json").out, `"apiVersion": "cli.fairlead.dev/v1"`)
	if got := h.run(t, "why", "bundle", "nothing"); got.code != 1 {
		t.Errorf("exit code %d, want 1", got.code)
	}
}

func TestVersionOfTheHub(t *testing.T) {
	h := getHub(t)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "cattle-fleet-system", Name: "fleet-controller", Annotations: map[string]string{"fleet.cattle.io/version": "9.9.9"}}}
	if err := h.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	wantText(t, h.must(t, "version").out, "Hub: 9.9.9\n")
}

// Somebody who may not read is told what is missing.
func TestForbidden(t *testing.T) {
	h := getHub(t)
	got := h.run(t, "get", "bundles", "--as", "nobody")
	if got.code != 1 {
		t.Errorf("exit code %d, want 1", got.code)
	}
	wantText(t, got.errOut, `User "nobody" cannot list resource "bundles" in API group "fleet.cattle.io"`)
}
