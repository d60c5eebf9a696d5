package cause

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

func condition(kind string, value corev1.ConditionStatus, message string) fleet.Condition {
	return fleet.Condition{Type: kind, Status: value, Message: message}
}

func repo(name string, change func(*fleet.GitRepo)) fleet.GitRepo {
	r := fleet.GitRepo{}
	r.Namespace, r.Name = "ws", name
	r.Status.Commit = "abc"
	if change != nil {
		change(&r)
	}
	return r
}

func bundle(name, owner string, change func(*fleet.Bundle)) fleet.Bundle {
	b := fleet.Bundle{}
	b.Namespace, b.Name = "ws", name
	b.Labels = map[string]string{fleet.RepoLabel: owner}
	b.Status.ObservedGeneration = 1
	b.Status.Summary = fleet.BundleSummary{Ready: 1, DesiredReady: 1}
	if change != nil {
		change(&b)
	}
	return b
}

// deployment is a ready one until it is changed.
func deployment(bundle, cluster string, change func(*fleet.BundleDeployment)) fleet.BundleDeployment {
	bd := fleet.BundleDeployment{}
	bd.Namespace, bd.Name = "cluster-"+cluster, bundle
	bd.Labels = map[string]string{
		fleet.BundleLabel: bundle, fleet.BundleNamespaceLabel: "ws",
		fleet.ClusterLabel: cluster, fleet.ClusterNamespaceLabel: "ws",
	}
	bd.Spec.DeploymentID, bd.Spec.StagedDeploymentID, bd.Status.AppliedDeploymentID = "s-1:2", "s-1:2", "s-1:2"
	bd.Status.Ready, bd.Status.NonModified = true, true
	if change != nil {
		change(&bd)
	}
	return bd
}

func cluster(name string, change func(*fleet.Cluster)) fleet.Cluster {
	c := fleet.Cluster{}
	c.Namespace, c.Name = "ws", name
	c.Status.Namespace = "cluster-" + name
	if change != nil {
		change(&c)
	}
	return c
}

func group(name, key, value string) fleet.ClusterGroup {
	g := fleet.ClusterGroup{}
	g.Namespace, g.Name = "ws", name
	g.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	return g
}

func notReady(bd *fleet.BundleDeployment) {
	bd.Status.Ready = false
	bd.Status.NonReadyStatus = []fleet.NonReadyStatus{{
		Kind: "Deployment", APIVersion: "apps/v1", Namespace: "shop", Name: "web",
		Summary: fleet.ObjectSummary{State: "updating", Transitioning: true, Message: []string{"0 of 1 available"}},
	}}
}

func failing(bd *fleet.BundleDeployment) {
	bd.Spec.DeploymentID = "s-2:2"
	bd.Status.Conditions = []fleet.Condition{condition(fleet.ConditionDeployed, corev1.ConditionFalse, "not allowed")}
}

func silent(c *fleet.Cluster) {
	c.Status.Conditions = []fleet.Condition{condition(fleet.ConditionAvailable, corev1.ConditionFalse, "no heartbeat for 5m")}
}

func counted(b *fleet.Bundle, summary fleet.BundleSummary) { b.Status.Summary = summary }

func worlds() map[string]World {
	return map[string]World{
		"ready": {
			GitRepos: []fleet.GitRepo{repo("shop", nil)}, Bundles: []fleet.Bundle{bundle("shop-web", "shop", nil)},
			Deployments: []fleet.BundleDeployment{deployment("shop-web", "one", nil)}, Clusters: []fleet.Cluster{cluster("one", nil)},
		},
		"source": {
			GitRepos: []fleet.GitRepo{repo("shop", func(r *fleet.GitRepo) {
				r.Status.Summary.NotReady = 1
				r.Status.Conditions = []fleet.Condition{condition(fleet.ConditionStalled, corev1.ConditionTrue, "no branch main")}
			})},
			Bundles:     []fleet.Bundle{bundle("shop-web", "shop", func(b *fleet.Bundle) { counted(b, fleet.BundleSummary{NotReady: 1, DesiredReady: 1}) })},
			Deployments: []fleet.BundleDeployment{deployment("shop-web", "one", notReady)},
		},
		"bundle": {
			GitRepos: []fleet.GitRepo{repo("shop", func(r *fleet.GitRepo) { r.Status.Summary.ErrApplied = 1 })},
			Bundles: []fleet.Bundle{bundle("shop-web", "shop", func(b *fleet.Bundle) {
				counted(b, fleet.BundleSummary{ErrApplied: 1, DesiredReady: 1})
				b.Status.Conditions = []fleet.Condition{condition(fleet.ConditionReady, corev1.ConditionFalse, "Cluster ws/one: the template fails; ErrApplied(1)")}
			})},
			Deployments: []fleet.BundleDeployment{deployment("shop-web", "one", failing)},
		},
		"object": {
			GitRepos: []fleet.GitRepo{repo("shop", func(r *fleet.GitRepo) { r.Status.Summary.NotReady = 1 })},
			Bundles: []fleet.Bundle{
				bundle("shop-db", "shop", nil),
				bundle("shop-web", "shop", func(b *fleet.Bundle) {
					counted(b, fleet.BundleSummary{NotReady: 2, DesiredReady: 2})
					b.Status.Conditions = []fleet.Condition{condition(fleet.ConditionReady, corev1.ConditionFalse, "NotReady(2)")}
				}),
			},
			Deployments: []fleet.BundleDeployment{
				deployment("shop-db", "one", nil), deployment("shop-web", "one", notReady), deployment("shop-web", "two", notReady),
			},
			Clusters: []fleet.Cluster{cluster("one", func(c *fleet.Cluster) { c.Status.Summary.NotReady = 1 }), cluster("two", nil)},
		},
		"offline": {
			Bundles:     []fleet.Bundle{bundle("shop-web", "shop", func(b *fleet.Bundle) { counted(b, fleet.BundleSummary{WaitApplied: 1, DesiredReady: 1}) })},
			Deployments: []fleet.BundleDeployment{deployment("shop-web", "one", failing)}, Clusters: []fleet.Cluster{cluster("one", silent)},
		},
		"dependency": {
			Bundles: []fleet.Bundle{
				bundle("app", "shop", func(b *fleet.Bundle) { counted(b, fleet.BundleSummary{ErrApplied: 1, DesiredReady: 1}) }),
				bundle("base", "shop", nil),
			},
			Deployments: []fleet.BundleDeployment{
				deployment("app", "one", func(bd *fleet.BundleDeployment) {
					failing(bd)
					bd.Spec.DependsOn = []fleet.BundleRef{{Name: "base"}}
				}),
				deployment("base", "one", notReady), deployment("base", "two", failing),
			},
		},
		"circle": {
			Deployments: []fleet.BundleDeployment{
				deployment("a", "one", func(bd *fleet.BundleDeployment) {
					failing(bd)
					bd.Spec.DependsOn = []fleet.BundleRef{{Name: "b"}}
				}),
				deployment("b", "one", func(bd *fleet.BundleDeployment) {
					failing(bd)
					bd.Spec.DependsOn = []fleet.BundleRef{{Name: "a"}}
				}),
			},
		},
		"held back": {
			GitRepos: []fleet.GitRepo{repo("shop", func(r *fleet.GitRepo) {
				r.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionReady, Status: corev1.ConditionFalse, Reason: fleet.ReasonError, Message: "Bundle shop-web: ..."}}
			})},
			Bundles: []fleet.Bundle{bundle("shop-web", "shop", func(b *fleet.Bundle) {
				counted(b, fleet.BundleSummary{OutOfSync: 1, Pending: 1, DesiredReady: 2, NonReadyResources: []fleet.NonReadyResource{
					{Name: "ws/one", State: fleet.OutOfSync, Message: "held back: render bundle shop-web: no"},
					{Name: "ws/two", State: fleet.Pending, Message: "held back: render bundle shop-web: never"},
				}})
				b.Status.Conditions = []fleet.Condition{{
					Type: fleet.ConditionReady, Status: corev1.ConditionFalse, Reason: fleet.ReasonError, Message: status.Message(&b.Status.Summary, "Cluster"),
				}}
			})},
			Deployments: []fleet.BundleDeployment{deployment("shop-web", "one", nil)},
			Clusters:    []fleet.Cluster{cluster("one", nil), cluster("two", nil)},
		},
		"group": {
			Bundles:     []fleet.Bundle{bundle("shop-web", "shop", func(b *fleet.Bundle) { counted(b, fleet.BundleSummary{NotReady: 1, DesiredReady: 1}) })},
			Deployments: []fleet.BundleDeployment{deployment("shop-web", "one", notReady)},
			Clusters: []fleet.Cluster{
				cluster("one", func(c *fleet.Cluster) { c.Status.Summary.NotReady, c.Labels = 1, map[string]string{"env": "prod"} }),
				cluster("two", func(c *fleet.Cluster) { c.Labels = map[string]string{"env": "dev"}; silent(c) }),
			},
			Groups: []fleet.ClusterGroup{group("prod", "env", "prod"), group("dev", "env", "dev"), group("none", "env", "test")},
		},
		"no clusters": {Bundles: []fleet.Bundle{bundle("shop-web", "shop", func(b *fleet.Bundle) { counted(b, fleet.BundleSummary{}) })}},
	}
}

func TestWhy(t *testing.T) {
	type step struct {
		Kind    Kind
		Name    string
		State   fleet.BundleState
		Message string
		Others  int
	}
	for name, test := range map[string]struct {
		world     string
		kind      Kind
		namespace string
		object    string
		want      []step
	}{
		"ready": {"ready", GitRepo, "ws", "shop", []step{{GitRepo, "shop", fleet.Ready, "", 0}}},
		"a source that cannot be read": {"source", GitRepo, "ws", "shop", []step{
			{GitRepo, "shop", Failed, "no branch main", 0}}},
		"a bundle's own problem": {"bundle", GitRepo, "ws", "shop", []step{
			{GitRepo, "shop", fleet.ErrApplied, "", 0},
			{Bundle, "shop-web", Failed, "Cluster ws/one: the template fails", 0}}},
		"an object": {"object", GitRepo, "ws", "shop", []step{
			{GitRepo, "shop", fleet.NotReady, "", 0},
			{Bundle, "shop-web", fleet.NotReady, "", 0},
			{Deployment, "shop-web", fleet.NotReady, "", 1},
			{Object, "Deployment/web", fleet.NotReady, "deployment.apps shop/web [progressing] 0 of 1 available", 0}}},
		"from a cluster": {"object", Cluster, "ws", "one", []step{
			{Cluster, "one", fleet.NotReady, "", 0},
			{Deployment, "shop-web", fleet.NotReady, "", 0},
			{Object, "Deployment/web", fleet.NotReady, "deployment.apps shop/web [progressing] 0 of 1 available", 0}}},
		"a silent cluster": {"offline", Bundle, "ws", "shop-web", []step{
			{Bundle, "shop-web", fleet.WaitApplied, "", 0},
			{Deployment, "shop-web", Offline, "its cluster is not heard from; last known: ErrApplied", 0},
			{Cluster, "one", Offline, "no heartbeat for 5m", 0}}},
		"a dependency on the same cluster": {"dependency", Bundle, "ws", "app", []step{
			{Bundle, "app", fleet.ErrApplied, "", 0},
			{Deployment, "app", fleet.ErrApplied, "not allowed", 0},
			{Deployment, "base", fleet.NotReady, "", 0},
			{Object, "Deployment/web", fleet.NotReady, "deployment.apps shop/web [progressing] 0 of 1 available", 0}}},
		"dependencies in a circle end": {"circle", Deployment, "cluster-one", "a", []step{
			{Deployment, "a", fleet.ErrApplied, "not allowed", 0},
			{Deployment, "b", fleet.ErrApplied, "not allowed", 0}}},
		"held back, with a deployment": {"held back", GitRepo, "ws", "shop", []step{
			{GitRepo, "shop", fleet.ErrApplied, "", 0},
			{Bundle, "shop-web", Failed, "", 0},
			{Deployment, "shop-web", fleet.OutOfSync, "render bundle shop-web: no", 1}}},
		"held back, from a cluster without one": {"held back", Cluster, "ws", "two", []step{
			{Cluster, "two", fleet.Pending, "", 0},
			{Deployment, "shop-web", fleet.Pending, "render bundle shop-web: never", 0}}},
		"a group": {"group", Group, "ws", "prod", []step{
			{Group, "prod", fleet.NotReady, "", 0},
			{Cluster, "one", fleet.NotReady, "", 0},
			{Deployment, "shop-web", fleet.NotReady, "", 0},
			{Object, "Deployment/web", fleet.NotReady, "deployment.apps shop/web [progressing] 0 of 1 available", 0}}},
		"a group with a silent cluster": {"group", Group, "ws", "dev", []step{
			{Group, "dev", fleet.NotReady, "", 0},
			{Cluster, "two", Offline, "no heartbeat for 5m", 0}}},
		"a group without clusters": {"group", Group, "ws", "none", []step{
			{Group, "none", fleet.Ready, "no cluster is in the group", 0}}},
		"no cluster": {"no clusters", Bundle, "ws", "shop-web", []step{
			{Bundle, "shop-web", fleet.Ready, "its targets match no cluster", 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			chain, found := New(worlds()[test.world]).Why(test.kind, test.namespace, test.object)
			if !found {
				t.Fatal("not found")
			}
			var got []step
			for i, item := range chain.Steps {
				got = append(got, step{item.Kind, item.Name, item.State, item.Message, chain.Others[i]})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("chain (-want +got):\n%s", diff)
			}
		})
	}
	if _, found := New(worlds()["ready"]).Why(Bundle, "ws", "other"); found {
		t.Error("a bundle that does not exist has a chain")
	}
}

func TestTreeIsWorstFirst(t *testing.T) {
	world := worlds()["object"]
	item, found := New(world).Tree(GitRepo, "ws", "shop")
	if !found || len(item.Children) != 2 || item.Children[0].Name != "shop-web" || item.Children[1].Name != "shop-db" {
		t.Fatalf("tree %+v, want shop-web before shop-db", item)
	}
	if objects := item.Children[0].Children[0].Children; len(objects) != 1 || objects[0].Name != "Deployment/web" {
		t.Errorf("objects %+v, want the one that is not ready", objects)
	}
}

// The order in which a hub lists things changes nothing.
func TestTreeDoesNotDependOnOrder(t *testing.T) {
	for name, world := range worlds() {
		want := New(world).Sources()
		for range 20 {
			shuffled := World{
				GitRepos: slices.Clone(world.GitRepos), Bundles: slices.Clone(world.Bundles),
				Deployments: slices.Clone(world.Deployments), Clusters: slices.Clone(world.Clusters),
			}
			rand.Shuffle(len(shuffled.Bundles), func(i, j int) {
				shuffled.Bundles[i], shuffled.Bundles[j] = shuffled.Bundles[j], shuffled.Bundles[i]
			})
			rand.Shuffle(len(shuffled.Deployments), func(i, j int) {
				shuffled.Deployments[i], shuffled.Deployments[j] = shuffled.Deployments[j], shuffled.Deployments[i]
			})
			if diff := cmp.Diff(want, New(shuffled).Sources()); diff != "" {
				t.Fatalf("%s: trees differ:\n%s", name, diff)
			}
		}
	}
}
