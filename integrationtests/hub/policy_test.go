package hub

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// acceptedIs checks the condition Accepted of a GitRepo.
func acceptedIs(want metav1.ConditionStatus, text string) func(*fleet.GitRepo) error {
	return func(object *fleet.GitRepo) error {
		accepted := status.Find(object.Status.Conditions, fleet.ConditionAccepted)
		if accepted == nil || string(accepted.Status) != string(want) || !strings.Contains(accepted.Message, text) {
			return fmt.Errorf("accepted is %v, want %s with %q", accepted, want, text)
		}
		return nil
	}
}

// TestPolicyBoundsSources adds a policy under a running GitRepo and takes it away again.
func TestPolicyBoundsSources(t *testing.T) {
	d := deployOne(t, nil)
	rule := &fleet.Policy{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "tenants"},
		GitRepo:    &fleet.GitRepoPolicy{AllowedRepoPatterns: []string{"https://elsewhere/.*"}},
	}
	d.h.create(rule)
	wait(d.h, d.object, "is refused", acceptedIs(metav1.ConditionFalse, "https://elsewhere/.*"))
	d.h.commit(d.repo, map[string]string{"app/one.yaml": fmt.Sprintf(configMap, "not-read")})
	d.keepsRunning()
	wait(d.h, rule, "is changed", func(object *fleet.Policy) error {
		object.GitRepo.AllowedRepoPatterns = []string{d.object.Spec.Repo}
		object.GitRepo.DefaultServiceAccount = "tenant"
		return d.h.client.Update(t.Context(), object)
	})
	wait(d.h, d.object, "is accepted", acceptedIs(metav1.ConditionTrue, ""))
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "app-app"}}
	wait(d.h, bundle, "has the default service account", func(object *fleet.Bundle) error {
		if object.Spec.ServiceAccount != "tenant" {
			return fmt.Errorf("service account %q", object.Spec.ServiceAccount)
		}
		return nil
	})
	if d.object.Spec.ServiceAccount != "" {
		t.Errorf("the GitRepo's spec belongs to people; it has got the service account %q", d.object.Spec.ServiceAccount)
	}
}

// TestPolicyBoundsBundles tries to leave the allowed namespace by a customization, and by a Bundle that no
// GitRepo made.
func TestPolicyBoundsBundles(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("inside", "outside")
	h.create(
		&fleet.GitRepoRestriction{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tenants"}, AllowedTargetNamespaces: []string{"apps"},
		},
		&fleet.Policy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tenants"}, RequireServiceAccount: true},
	)
	bundle := func(name string, spec fleet.BundleSpec) *fleet.Bundle {
		spec.Resources = []fleet.BundleResource{{Name: "one.yaml", Content: fmt.Sprintf(configMap, name)}}
		return &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	}
	tenant := fleet.BundleDeploymentOptions{ServiceAccount: "tenant", TargetNamespace: "apps"}
	escapes := bundle("escapes", fleet.BundleSpec{BundleDeploymentOptions: tenant, Targets: []fleet.BundleTarget{
		{ClusterTarget: fleet.ClusterTarget{ClusterName: "inside"}},
		{ClusterTarget: fleet.ClusterTarget{ClusterName: "outside"}, BundleDeploymentOptions: fleet.BundleDeploymentOptions{TargetNamespace: "kube-system"}},
	}})
	raw := bundle("raw", fleet.BundleSpec{
		BundleDeploymentOptions: fleet.BundleDeploymentOptions{TargetNamespace: "apps"},
		Targets:                 []fleet.BundleTarget{{ClusterTarget: fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}}}},
	})
	says := func(text string) func(*fleet.Bundle) error {
		return func(object *fleet.Bundle) error {
			if ready := status.Find(object.Status.Conditions, fleet.ConditionReady); ready == nil || !strings.Contains(ready.Message, text) {
				return fmt.Errorf("ready is %v, want %q", ready, text)
			}
			return nil
		}
	}
	// The hub hears of policies and of Bundles by watches of their own. What was sent before it hears of a policy stays.
	at := []fleet.BundleTarget{{ClusterTarget: fleet.ClusterTarget{ClusterName: "inside"}}}
	demanding := bundle("demanding", fleet.BundleSpec{BundleDeploymentOptions: fleet.BundleDeploymentOptions{TargetNamespace: "apps"}, Targets: at})
	restricting := bundle("restricting", fleet.BundleSpec{
		BundleDeploymentOptions: fleet.BundleDeploymentOptions{ServiceAccount: "tenant", TargetNamespace: "kube-system"}, Targets: at,
	})
	h.create(demanding, restricting)
	wait(h, demanding, "knows the policy", says("requires a serviceAccount"))
	wait(h, restricting, "knows the restriction", says("is not allowed"))
	h.create(escapes, raw)
	wait(h, escapes, "names the namespace", says(`Cluster `+namespace+`/outside: held back: namespace "kube-system" is not allowed`))
	wait(h, raw, "demands a service account", says("requires a serviceAccount"))
	made := h.waitDeployments("escapes", namespace, "inside")
	if create := made["inside"].Spec.Options.CreateNamespace; create == nil || *create {
		t.Error("the policy forbids to create namespaces")
	}
	if left := h.deployments("raw", namespace); len(left) > 0 {
		t.Errorf("deployments of a bundle that is not allowed: %v", left)
	}
}
