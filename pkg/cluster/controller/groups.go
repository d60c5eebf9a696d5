package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
)

// groups rolls clusters up into the groups they are in.
type groups struct {
	options Options
	client  client.Client
}

func registerGroups(mgr manager.Manager, options Options) error {
	r := &groups{options: options, client: mgr.GetClient()}
	build := builder.ControllerManagedBy(mgr).
		Named("clustergroup").
		For(&fleet.ClusterGroup{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Workers}).
		Watches(&fleet.Cluster{}, newPace(options.Now).handler(r.groupsOf))
	return options.Shards.Complete(mgr, build, &fleet.ClusterGroup{}, r)
}

// groupsOf returns the groups that a cluster, as it is or as it was, is in.
func (r *groups) groupsOf(ctx context.Context, object client.Object) []reconcile.Request {
	var all fleet.ClusterGroupList
	if err := r.client.List(ctx, &all, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // only before the cache is started
	}
	var requests []reconcile.Request
	for i := range all.Items {
		selector, err := cluster.Selector(&all.Items[i])
		if err == nil && selector.Matches(labels.Set(object.GetLabels())) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

// Reconcile brings the status of one group up to date.
func (r *groups) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var stored fleet.ClusterGroup
	if err := r.client.Get(ctx, request.NamespacedName, &stored); err != nil || stored.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	selector, problem := cluster.Selector(&stored)
	var members fleet.ClusterList
	err := r.client.List(ctx, &members, client.InNamespace(stored.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("list clusters of ClusterGroup %s: %w", request, err)
	}
	wanted := cluster.GroupStatus(&stored, members.Items, problem, r.options.Now())
	if equality.Semantic.DeepEqual(stored.Status, wanted) {
		return reconcile.Result{}, nil
	}
	before := stored.DeepCopy()
	stored.Status = wanted
	if err := r.client.Status().Patch(ctx, &stored, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write status of ClusterGroup %s: %w", request, err)
	}
	return reconcile.Result{}, nil
}
