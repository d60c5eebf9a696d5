package hub

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// awaitExact waits until every status says what the deployments say, and returns how long after an event
// that was.
func (r *run) awaitExact(after time.Time) time.Duration {
	r.t.Helper()
	var counted counted
	r.awaitSlowly("all statuses are exact", 50*time.Millisecond, func(ctx context.Context) error {
		counted.renew(r.agents)
		return r.inexact(ctx, counted.index)
	})
	return max(time.Since(after), 0)
}

// counted is the roll-up of all deployments, by the benchmark itself.
type counted struct {
	index   *tally.Index
	version int
}

// renew counts all deployments anew when one has changed.
func (c *counted) renew(agents *agents) {
	all, version := agents.since(c.version)
	if all == nil && c.index != nil {
		return
	}
	c.index, c.version = tally.NewIndex(), version
	for key, deployment := range all {
		c.index.Set(tally.Ref{Namespace: key.Namespace, Name: key.Name}, tally.Trim(deployment))
	}
}

// newShown returns what statuses say, kept by watches: lists again and again would take the API server's time.
func newShown(t testing.TB, config *rest.Config, scheme *runtime.Scheme) client.Reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })
	shown, err := cache.New(config, cache.Options{
		Scheme: scheme, DefaultTransform: cache.TransformStripManagedFields(), DefaultNamespaces: map[string]cache.Config{stack.Workspace: {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	group.Go(func() { _ = shown.Start(ctx) })
	for _, object := range []client.Object{&fleet.Bundle{}, &fleet.Cluster{}, &fleet.ClusterGroup{}} {
		if _, err := shown.GetInformer(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	return shown
}

// inexact returns which status says something else than what was counted.
func (r *run) inexact(ctx context.Context, index *tally.Index) error {
	var bundles fleet.BundleList
	var clusters fleet.ClusterList
	var groups fleet.ClusterGroupList
	for _, list := range []client.ObjectList{&bundles, &clusters, &groups} {
		if err := r.shown.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
	}
	for i := range bundles.Items {
		bundle := &bundles.Items[i]
		if err := same("Bundle "+bundle.Name, index.Bundle(bundle.Namespace, bundle.Name).Summary, bundle.Status.Summary); err != nil && bundle.DeletionTimestamp == nil {
			return err
		}
	}
	wanted := map[string]tally.Rollup{}
	for i := range clusters.Items {
		member := &clusters.Items[i]
		wanted[member.Name] = index.Cluster(member.Namespace, member.Name)
		if err := same("Cluster "+member.Name, wanted[member.Name].Summary, member.Status.Summary); err != nil {
			return err
		}
	}
	for i := range groups.Items {
		group := &groups.Items[i]
		var total tally.Rollup
		for j := range clusters.Items {
			if selector, err := cluster.Selector(group); err == nil && selector.Matches(labels.Set(clusters.Items[j].Labels)) {
				total.Add(wanted[clusters.Items[j].Name])
			}
		}
		if err := same("ClusterGroup "+group.Name, total.Summary, group.Status.Summary); err != nil {
			return err
		}
	}
	return nil
}

// same compares the counts of two summaries.
func same(what string, want, got fleet.BundleSummary) error {
	want.NonReadyResources, got.NonReadyResources = nil, nil
	if fmt.Sprint(want) != fmt.Sprint(got) {
		return fmt.Errorf("%s says %+v, counted %+v", what, got, want)
	}
	return nil
}

// quietTime is longer than any status is held back, and than a busy machine stands still.
const quietTime = 5 * time.Second

// settle waits until nothing but leases was written for a while.
func (r *run) settle() {
	r.t.Helper()
	last, since := -1, time.Now()
	r.awaitSlowly("the hub is quiet", time.Second, func(ctx context.Context) error {
		requests, err := r.stack.Hub.MutatingRequests(ctx)
		if err != nil {
			return err
		}
		if total := requests.Only(writes.Stored, writes.NotLeases).Total(); total != last {
			last, since = total, time.Now()
		}
		if quiet := time.Since(since); quiet < quietTime {
			return fmt.Errorf("for %s", quiet)
		}
		return nil
	})
}
