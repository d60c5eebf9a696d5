package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// dependent are a bundle and the two it depends on by their labels, which are read and written after it by name. One of
// them has to be rendered as a chart and goes to a part of the clusters only.
func dependent(version string) map[string]string {
	return map[string]string{
		"app/fleet.yaml":         "defaultNamespace: shop\ndependsOn: [{selector: {matchLabels: {tier: platform}}}]\n",
		"app/one.yaml":           fmt.Sprintf(configMap, version),
		"quotas/fleet.yaml":      "defaultNamespace: shop\nlabels: {tier: platform}\n",
		"quotas/quota.yaml":      fmt.Sprintf(configMap, "quota-"+version),
		"roles/fleet.yaml":       "defaultNamespace: shop\nlabels: {tier: platform}\ntargetCustomizations: [{clusterName: b, doNotDeploy: true}]\n",
		"roles/Chart.yaml":       "apiVersion: v2\nname: roles\nversion: 1.0.0\n",
		"roles/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: roles}\ndata: {version: " + version + "}\n",
	}
}

// What a bundle depends on reaches each cluster before it: when a repository is new, when a commit changes all of them,
// and when a cluster joins.
func TestDependenciesGoFirst(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("a", "b", "c")
	repo, commit := h.repo(dependent("v1"))
	object := gitRepo(namespace, "shop", repo.HTTPURL(), nil)
	h.create(object)
	wait(h, object, "has the commit", commitIs(commit))
	h.waitDeployments("shop-app", namespace, "a", "b", "c")
	h.inOrder(namespace, "create", map[string][]string{"a": {"shop-quotas", "shop-roles"}, "b": {"shop-quotas"}, "c": {"shop-quotas", "shop-roles"}})

	before := h.deployments("shop-app", namespace)
	wait(h, object, "has the second commit", commitIs(h.commit(repo, dependent("v2"))))
	kubetest.Eventually(t, "the change is sent", func(context.Context) error {
		for cluster, deployment := range h.deployments("shop-app", namespace) {
			if deployment.Spec.DeploymentID == before[cluster].Spec.DeploymentID {
				return fmt.Errorf("%s runs the first version", cluster)
			}
		}
		return nil
	})
	h.inOrder(namespace, "patch", map[string][]string{"a": {"shop-quotas", "shop-roles"}, "b": {"shop-quotas"}, "c": {"shop-quotas", "shop-roles"}})

	h.create(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "d", Labels: map[string]string{"env": "d"}}})
	h.waitDeployments("shop-app", namespace, "a", "b", "c", "d")
	h.inOrder(namespace, "create", map[string][]string{"d": {"shop-quotas", "shop-roles"}})
	for _, name := range []string{"shop-app", "shop-quotas", "shop-roles"} {
		wait(h, &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, "waits for nothing", func(b *fleet.Bundle) error {
			for _, resource := range b.Status.Summary.NonReadyResources {
				if strings.Contains(resource.Message, "waiting") {
					return fmt.Errorf("%s: %s", resource.Name, resource.Message)
				}
			}
			return nil
		})
	}
}

// inOrder checks that the first write of one kind to shop-app on each cluster was asked for after that to others.
func (h *hub) inOrder(namespace, verb string, first map[string][]string) {
	h.t.Helper()
	for cluster, others := range first {
		app := h.firstWrite(namespace, verb, cluster, "shop-app")
		for _, other := range others {
			if at := h.firstWrite(namespace, verb, cluster, other); at.After(app) {
				h.t.Errorf("%s of shop-app on %s comes at %s, of %s at %s", verb, cluster, app, other, at)
			}
		}
	}
}

// firstWrite returns when a deployment was first written so. The audit log has a write a moment after its answer was given,
// and two of them perhaps in another order than they came in.
func (h *hub) firstWrite(namespace, verb, cluster, name string) (at time.Time) {
	h.t.Helper()
	kubetest.Eventually(h.t, fmt.Sprintf("the audit log has a %s of %s on %s", verb, name, cluster), func(context.Context) error {
		for _, w := range h.writes() {
			found := w.Verb == verb && w.Subresource == "" && belongsTo(w.Namespace, namespace+"-"+cluster) &&
				w.Resource == "bundledeployments" && w.Name == name && !writes.Refused(w.Request)
			if found && (at.IsZero() || w.Time.Before(at)) {
				at = w.Time
			}
		}
		if at.IsZero() {
			return errors.New("it has not")
		}
		return nil
	})
	return at
}
