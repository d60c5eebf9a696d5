package cause

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// told is a world whose statuses the builders of package parent made, as the hub's controllers let them.
func told(t *testing.T, deployments []fleet.BundleDeployment, bundles map[string]parent.BundleInput) World {
	t.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	index := tally.NewIndex()
	world := World{Deployments: deployments}
	for i := range deployments {
		bd := &deployments[i]
		bd.Labels[fleet.RepoLabel] = "shop"
		index.Set(tally.Ref{Namespace: bd.Namespace, Name: bd.Name}, tally.Trim(bd))
	}
	var readiness []parent.BundleReadiness
	for name, input := range bundles {
		input.Generation, input.Rollup = 1, index.Bundle("ws", name)
		b := bundle(name, "shop", func(b *fleet.Bundle) { b.Status = parent.Bundle(input, now) })
		world.Bundles = append(world.Bundles, b)
		readiness = append(readiness, parent.ReadinessOf(&b))
	}
	world.GitRepos = []fleet.GitRepo{repo("shop", func(r *fleet.GitRepo) {
		r.Status.StatusBase = parent.Source(parent.SourceInput{Rollup: index.GitRepo("ws", "shop"), Bundles: readiness}, now)
	})}
	for _, name := range []string{"one", "two", "three"} {
		world.Clusters = append(world.Clusters, cluster(name, func(c *fleet.Cluster) {
			parent.ApplyCluster(&c.Status, index.Cluster("ws", name), parent.Liveness{}, now)
		}))
	}
	return world
}

// What conditions say first and where a chain leads is the same, from whatever one asks.
func TestConditionsAndChainsAgree(t *testing.T) {
	none := parent.BundleInput{}
	held := func(cluster string, state fleet.BundleState) parent.BundleInput {
		in := parent.BundleInput{Held: []parent.Held{{Name: "ws/" + cluster, State: state, Message: "render bundle web: no"}}}
		if state == "" {
			in.Rollout = &parent.Rollout{Missing: 1}
		}
		return in
	}
	broken := parent.BundleInput{Err: fault.New(fault.Stalled, "InvalidTarget", "targets: no selector")}
	waiting := parent.BundleInput{Err: fault.New(fault.Waiting, "ValuesMissing", "the Secret is not there")}
	for name, test := range map[string]struct {
		deployments []fleet.BundleDeployment
		bundles     map[string]parent.BundleInput
		// first is what everybody names: bundle, cluster and a part of the message; empty when all is ready.
		bundle, cluster, message string
	}{
		"ready":                    {[]fleet.BundleDeployment{deployment("web", "one", nil)}, map[string]parent.BundleInput{"web": none}, "", "", ""},
		"fails on one":             {[]fleet.BundleDeployment{deployment("web", "one", nil), deployment("web", "two", failing)}, map[string]parent.BundleInput{"web": none}, "web", "two", "not allowed"},
		"fails on two":             {[]fleet.BundleDeployment{deployment("web", "one", failing), deployment("web", "two", failing)}, map[string]parent.BundleInput{"web": none}, "web", "one", "not allowed"},
		"one fails, one is slow":   {[]fleet.BundleDeployment{deployment("app", "one", notReady), deployment("web", "two", failing)}, map[string]parent.BundleInput{"app": none, "web": none}, "web", "two", "not allowed"},
		"an object":                {[]fleet.BundleDeployment{deployment("web", "one", notReady)}, map[string]parent.BundleInput{"web": none}, "web", "one", "0 of 1 available"},
		"held back":                {[]fleet.BundleDeployment{deployment("web", "one", nil), deployment("web", "two", nil)}, map[string]parent.BundleInput{"web": held("two", fleet.Ready)}, "web", "two", "render bundle web: no"},
		"held back, new":           {[]fleet.BundleDeployment{deployment("web", "one", nil)}, map[string]parent.BundleInput{"web": held("two", "")}, "web", "two", "render bundle web: no"},
		"held back and slow":       {[]fleet.BundleDeployment{deployment("web", "one", notReady), deployment("web", "two", nil)}, map[string]parent.BundleInput{"web": held("two", fleet.Ready)}, "web", "two", "render bundle web: no"},
		"held back, another fails": {[]fleet.BundleDeployment{deployment("app", "one", failing), deployment("web", "two", nil)}, map[string]parent.BundleInput{"app": none, "web": held("two", fleet.Ready)}, "web", "two", "render bundle web: no"},
		"a bundle is wrong":        {[]fleet.BundleDeployment{deployment("app", "one", failing)}, map[string]parent.BundleInput{"app": none, "web": broken}, "web", "", "targets: no selector"},
		"two bundles are wrong":    {nil, map[string]parent.BundleInput{"b": broken, "a": broken}, "a", "", "targets: no selector"},
		"a bundle waits":           {nil, map[string]parent.BundleInput{"web": waiting}, "", "", ""},
		"a person must confirm":    {[]fleet.BundleDeployment{deployment("web", "one", nil)}, map[string]parent.BundleInput{"web": {Problems: []string{"deleting 8 of 9 waits"}}}, "web", "", "deleting 8 of 9 waits"},
	} {
		t.Run(name, func(t *testing.T) {
			world := told(t, test.deployments, test.bundles)
			graph := New(world)
			source := status.Find(world.GitRepos[0].Status.Conditions, fleet.ConditionReady)
			check(t, graph, ref{GitRepo, "ws", "shop"}, source, test.bundle, test.message)
			for i := range world.Bundles {
				if b := &world.Bundles[i]; b.Name == test.bundle {
					check(t, graph, ref{Bundle, "ws", b.Name}, status.Find(b.Status.Conditions, fleet.ConditionReady), test.cluster, test.message)
				}
			}
			if test.cluster == "" {
				return
			}
			chain, _ := graph.Why(Cluster, "ws", test.cluster)
			if !strings.Contains(test.message, "render") { // what is not sent is not the Cluster's to count
				check(t, graph, ref{Cluster, "ws", test.cluster}, readyOf(world, test.cluster), test.bundle, test.message)
			}
			if err := leadsTo(chain, test.bundle, test.message); err != nil {
				t.Errorf("from the cluster: %v", err)
			}
		})
	}
}

func readyOf(world World, cluster string) *fleet.Condition {
	for i := range world.Clusters {
		if world.Clusters[i].Name == cluster {
			return status.Find(world.Clusters[i].Status.Conditions, fleet.ConditionReady)
		}
	}
	return nil
}

// check holds a chain and a condition against what both must name.
func check(t *testing.T, graph *Graph, id ref, ready *fleet.Condition, name, message string) {
	t.Helper()
	chain, found := graph.Why(id.kind, id.namespace, id.name)
	if !found {
		t.Fatalf("%v is not there", id)
	}
	if fine := ready.Status == corev1.ConditionTrue; fine != chain.IsReady() || fine != (message == "") {
		t.Errorf("%v: condition %+v, chain %+v", id, ready, chain.Steps)
	}
	if !strings.Contains(ready.Message, name) || !strings.Contains(ready.Message, message) {
		t.Errorf("%v: the condition says %q, want %q and %q", id, ready.Message, name, message)
	}
	if message == "" {
		return
	}
	if err := leadsTo(chain, name, message); err != nil {
		t.Errorf("%v: %v", id, err)
	}
}

func leadsTo(chain Chain, name, message string) error {
	if len(chain.Steps) == 0 {
		return errors.New("no chain")
	}
	last := chain.Steps[len(chain.Steps)-1]
	named := false
	for _, step := range chain.Steps {
		named = named || name == "" || step.Name == name || strings.HasSuffix(step.Cluster, "/"+name)
	}
	if !named || !strings.Contains(last.Message, message) {
		return fmt.Errorf("the chain ends with %+v and names %q: %v", last, name, named)
	}
	return nil
}
