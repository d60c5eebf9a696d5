package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
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
		Watches(&fleet.Cluster{}, r.clusterEvents()).
		WatchesRawSource(options.Rollups.Source(tally.KindClusterGroup))
	return options.Shards.Complete(mgr, build, &fleet.ClusterGroup{}, r)
}

// clusterEvents lets the groups that a cluster is in, or was, be woken up in their time: a bundle changes the numbers
// of many clusters.
func (r *groups) clusterEvents() handler.EventHandler {
	changed := func(ctx context.Context, objects ...client.Object) {
		for _, object := range objects {
			for _, group := range r.groupsOf(ctx, object) {
				r.options.Rollups.Changed(tally.KindClusterGroup, group.Namespace, group.Name)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, _ requests) { changed(ctx, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ requests) { changed(ctx, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ requests) { changed(ctx, e.Object) },
	}
}

// groupsOf returns the groups that a cluster is in.
func (r *groups) groupsOf(ctx context.Context, object client.Object) []types.NamespacedName {
	var all fleet.ClusterGroupList
	if err := r.client.List(ctx, &all, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil // only before the cache is started
	}
	var found []types.NamespacedName
	for i := range all.Items {
		selector, err := cluster.Selector(&all.Items[i])
		if err == nil && selector.Matches(labels.Set(object.GetLabels())) {
			found = append(found, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return found
}

// Reconcile brings the status of one group up to date.
func (r *groups) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var stored fleet.ClusterGroup
	if err := r.client.Get(ctx, request.NamespacedName, &stored); err != nil || stored.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	telling := r.options.Rollups.Telling(tally.KindClusterGroup, request.Namespace, request.Name)
	selector, problem := cluster.Selector(&stored)
	var members fleet.ClusterList
	err := r.client.List(ctx, &members, client.InNamespace(stored.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("list clusters of ClusterGroup %s: %w", request, err)
	}
	wanted := cluster.GroupStatus(&stored, members.Items, problem, r.options.Now())
	switch {
	case equality.Semantic.DeepEqual(stored.Status, wanted):
		telling.Nothing()
		return reconcile.Result{}, nil
	case problem != nil || stored.Status.ClusterCount != wanted.ClusterCount:
		telling.Must()
	case !telling.May():
		return reconcile.Result{}, nil
	}
	before := stored.DeepCopy()
	stored.Status = wanted
	if err := r.client.Status().Patch(ctx, &stored, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("write status of ClusterGroup %s: %w", request, err)
	}
	return reconcile.Result{}, nil
}
