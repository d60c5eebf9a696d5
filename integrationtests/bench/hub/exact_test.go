package hub

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// awaitExact waits until every status says what the deployments say, and returns how long after an event
// that was.
func (r *run) awaitExact(after time.Time) time.Duration {
	r.t.Helper()
	r.awaitSlowly("all statuses are exact", 200*time.Millisecond, r.inexact)
	return max(time.Since(after), 0)
}

// inexact counts all deployments anew and returns what says something else.
func (r *run) inexact(ctx context.Context) error {
	index := status.NewIndex()
	for key, deployment := range r.agents.all() {
		index.Set(status.Ref{Namespace: key.Namespace, Name: key.Name}, status.Trim(deployment))
	}
	var bundles fleet.BundleList
	var clusters fleet.ClusterList
	var groups fleet.ClusterGroupList
	for _, list := range []client.ObjectList{&bundles, &clusters, &groups} {
		if err := r.client.List(ctx, list, client.InNamespace(stack.Workspace)); err != nil {
			return err
		}
	}
	for i := range bundles.Items {
		bundle := &bundles.Items[i]
		if err := same("Bundle "+bundle.Name, index.Bundle(bundle.Namespace, bundle.Name).Summary, bundle.Status.Summary); err != nil && bundle.DeletionTimestamp == nil {
			return err
		}
	}
	wanted := map[string]status.Rollup{}
	for i := range clusters.Items {
		member := &clusters.Items[i]
		wanted[member.Name] = index.Cluster(member.Namespace, member.Name)
		if err := same("Cluster "+member.Name, wanted[member.Name].Summary, member.Status.Summary); err != nil {
			return err
		}
	}
	for i := range groups.Items {
		group := &groups.Items[i]
		var total status.Rollup
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

// quietTime is longer than any status is held back.
const quietTime = 3 * time.Second

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
