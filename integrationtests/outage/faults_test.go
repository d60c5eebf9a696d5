package outage

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/faultproxy"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// faulty is a hub behind a fault proxy, with bundles that reach their clusters in different ways.
type faulty struct {
	*world
	proxy   *faultproxy.Proxy
	hub     *process.Process
	far     string // the workspace of the bundle that is mapped
	version int
}

// reached are the bundles of a faulty world with how many clusters they reach.
var reached = map[string]int{"by-label": 3, "by-name": 2, "by-group": 1, "by-group-name": 1, "mapped": 3}

func newFaulty(t *testing.T) *faulty {
	t.Helper()
	f := &faulty{world: newWorld(t, "a", "b", "c")}
	proxy, err := faultproxy.Start(f.account.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Close() })
	f.proxy = proxy
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := proxy.Kubeconfig(f.account.Kubeconfig, kubeconfig); err != nil {
		t.Fatal(err)
	}
	group := &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "first", Labels: map[string]string{"of": "first"}}}
	group.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "a"}}
	withValues := f.bundle("by-label", "0", fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}})
	withValues.Spec.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{"some": "value"}}}
	f.create(group, withValues,
		f.bundle("by-name", "0", fleet.ClusterTarget{ClusterName: "a"}, fleet.ClusterTarget{ClusterName: "b"}),
		f.bundle("by-group", "0", fleet.ClusterTarget{ClusterGroupSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": "first"}}}),
		f.bundle("by-group-name", "0", fleet.ClusterTarget{ClusterGroup: "first"}),
	)
	// A bundle in another workspace that a mapping lets reach the clusters of this one.
	f.far = kubetest.Namespace(t, f.cluster)
	mapped := f.bundle("mapped", "0", fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}})
	mapped.Namespace, mapped.Labels = f.far, map[string]string{"far": "yes"}
	f.create(&fleet.BundleNamespaceMapping{
		ObjectMeta:        metav1.ObjectMeta{Namespace: f.far, Name: "far"},
		BundleSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{"far": "yes"}},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": f.namespace}},
	}, mapped)
	f.hub = f.world.hub("fleet-controller", kubeconfig, nil, "--leader-elect=false")
	f.awaitAll(nil)
	return f
}

func (f *faulty) awaitAll(not map[string]string) map[string]string {
	f.t.Helper()
	ids := map[string]string{}
	for name, count := range reached {
		ids[name] = f.of(name).awaitDeployed(name, count, not[name])
	}
	return ids
}

// of returns the world seen from a bundle's workspace.
func (f *faulty) of(bundle string) *world {
	if bundle != "mapped" {
		return f.world
	}
	far := *f.world
	far.namespace = f.far
	return &far
}

// changeAll has a person edit every bundle, so that no guard against mass deletion holds anything back.
func (f *faulty) changeAll() {
	f.t.Helper()
	f.version++
	for name := range reached {
		f.of(name).change(name, fmt.Sprint(f.version))
	}
}

// pause gives the hub time to do something wrong. Nothing is asserted about time.
func pause(t *testing.T, duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-t.Context().Done():
	}
}

// through has the hub work under rules, while people edit all bundles, and then wants everything there, the
// edits carried out, and nothing deleted.
func (f *faulty) through(begin func(), rules ...faultproxy.Rule) {
	f.t.Helper()
	f.proxy.Set()
	ids := f.awaitAll(nil)
	before, from := f.uids(), len(f.writesSince(0))
	f.proxy.Set(rules...)
	begin()
	kubetest.Eventually(f.t, "the hub meets the fault", func(context.Context) error {
		for i, hits := range f.proxy.Hits() {
			if hits == 0 {
				return fmt.Errorf("rule %d was not met", i)
			}
		}
		return nil
	})
	f.changeAll()
	pause(f.t, time.Second)
	f.proxy.Set()
	f.awaitAll(ids)
	f.nothingDeleted(before, from)
	if err := f.hub.Err(); err != nil {
		f.t.Error(err)
	}
}

func (f *faulty) restart() {
	f.t.Helper()
	if err := errors.Join(f.hub.Kill(), f.hub.Start()); err != nil {
		f.t.Fatal(err)
	}
}

// A list that is empty although objects exist deletes nothing: not from caches that knew them, and not
// from those of a controller that has just started.
func TestEmptyListsDeleteNothing(t *testing.T) {
	f := newFaulty(t)
	cases := map[string]struct {
		resources []string
		cold      bool
	}{
		"known":                            {resources: []string{"clusters", "clustergroups", "bundles", "bundledeployments", "bundlenamespacemappings", "namespaces", "secrets", "contents"}},
		"after a start: clusters":          {resources: []string{"clusters"}, cold: true},
		"after a start: clustergroups":     {resources: []string{"clustergroups"}, cold: true},
		"after a start: bundles":           {resources: []string{"bundles"}, cold: true},
		"after a start: bundledeployments": {resources: []string{"bundledeployments"}, cold: true},
		"after a start: mappings":          {resources: []string{"bundlenamespacemappings"}, cold: true},
		"after a start: what is built in":  {resources: []string{"namespaces", "secrets", "contents"}, cold: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var rules []faultproxy.Rule
			for _, resource := range c.resources {
				rules = append(rules, faultproxy.Rule{Match: faultproxy.Lists(resource), Do: faultproxy.Empty()})
			}
			begin := func() { f.proxy.ExpireWatches("") }
			if c.cold {
				begin = f.restart
			}
			f.in(t).through(begin, rules...)
		})
	}
}

// in returns the world in the hands of a subtest.
func (f *faulty) in(t *testing.T) *faulty {
	world := *f.world
	world.t = t
	f.world = &world
	return f
}

// Errors, whichever, delete nothing and are recovered from.
func TestErrorsDeleteNothing(t *testing.T) {
	f := newFaulty(t)
	fleetRead := func(r faultproxy.Request) bool { return !r.Mutates() && r.Resource != "" }
	fleetWrite := func(r faultproxy.Request) bool { return r.Mutates() && r.Group == fleet.GroupVersion.Group }
	cases := map[string]faultproxy.Rule{
		"reads are cut":              {Match: fleetRead, Do: faultproxy.Cut()},
		"answers to writes are lost": {Match: fleetWrite, Do: faultproxy.LoseAnswer()},
		"events come late and twice": {Match: faultproxy.Of("bundledeployments", "watch"), Do: faultproxy.HoldBack(300 * time.Millisecond).Twice()},
	}
	for name, rule := range cases {
		t.Run(name, func(t *testing.T) {
			f.in(t).through(func() {
				f.proxy.ExpireWatches("")
				f.changeAll()
			}, rule)
		})
	}
}
