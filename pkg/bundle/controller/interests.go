package controller

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// clusterPause is how long bundles wait after a change of a cluster, so that many clusters that change
// together are looked at together.
const clusterPause = 250 * time.Millisecond

// interest is what the last plan of a bundle depended on.
type interest struct {
	// mutex is held by a pass over the bundle while it plans.
	mutex      sync.Mutex
	memory     target.Memory
	generation int64
	planned    bool
	// keys of cluster labels that decide; all says that any label or annotation may.
	keys map[string]bool
	all  bool
	// queued says that clusters wait for others to be ready, and lingering clusters for their schedule.
	queued    bool
	lingering []string
	// passing says that a pass reads what it plans on, and unseen are the changes that came since and that the
	// last plan did not care for: they may be missing in what was read, and the new plan may care. Then missed.
	passing, missed bool
	unseen          []clusterChange
}

// begin starts a pass: what changes from now on may be missing in its snapshot.
func (i *interest) begin() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.passing, i.missed, i.unseen = true, false, nil
}

// end ends a pass, and says whether its plan cares for a change that it may have missed.
func (i *interest) end() bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.passing, i.unseen = false, nil
	return i.missed
}

// interests finds the bundles that care for a change.
type interests struct {
	mutex   sync.Mutex
	bundles map[types.NamespacedName]*interest
}

func (i *interests) of(key types.NamespacedName) *interest {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.bundles == nil {
		i.bundles = map[types.NamespacedName]*interest{}
	}
	found := i.bundles[key]
	if found == nil {
		found = &interest{}
		i.bundles[key] = found
	}
	return found
}

func (i *interests) forget(key types.NamespacedName) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	delete(i.bundles, key)
}

// plan plans a bundle with what is remembered of it, and remembers what the plan depended on.
func (i *interest) plan(snapshot target.Snapshot, metrics *Metrics) (target.Plan, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	snapshot.Memory = &i.memory
	plan, err := target.NewPlan(snapshot)
	metrics.planned(i.memory.Evaluated, i.memory.Cached)
	if err != nil {
		i.planned = false
		return plan, err
	}
	if !i.planned || i.generation != snapshot.Bundle.Generation || target.RefersToGroups(&snapshot.Bundle.Spec) {
		keys, all, err := target.LabelKeys(snapshot.Bundle, snapshot.Groups)
		if err != nil {
			return plan, err
		}
		i.keys, i.all = make(map[string]bool, len(keys)), all
		for _, key := range keys {
			i.keys[key] = true
		}
	}
	i.planned, i.generation, i.queued = true, snapshot.Bundle.Generation, plan.Queued > 0
	i.lingering = plan.Lingering
	i.missed = i.missed || slices.ContainsFunc(i.unseen, i.caresFor)
	return plan, nil
}

// waits says that clusters of the bundle wait for others.
func (i *interest) waits() bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.queued
}

// touchedBy says that a change may change the bundle's plan.
func (i *interest) touchedBy(bundle *fleet.Bundle, change clusterChange) bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if !i.planned || i.generation != bundle.Generation || i.caresFor(change) {
		return true
	}
	if i.passing {
		i.unseen = append(i.unseen, change)
	}
	return false
}

// caresFor says that the last plan would be another one after a change.
func (i *interest) caresFor(change clusterChange) bool {
	switch {
	case i.all && (len(change.labels) > 0 || change.values):
		return true
	case change.state && (i.memory.MayReach(change.cluster) || slices.Contains(i.lingering, change.cluster)):
		return true
	}
	for key := range change.labels {
		if i.keys[key] {
			return true
		}
	}
	return false
}

// clusterChange is what differs between two versions of a Cluster, as far as a plan may depend on it.
type clusterChange struct {
	// cluster is "namespace/name".
	cluster string
	// labels whose values differ.
	labels map[string]bool
	// values says that annotations or template values differ, which templates may look at.
	values bool
	// state says that what a plan needs to know of a cluster that it reaches differs.
	state bool
}

func (c clusterChange) none() bool { return len(c.labels) == 0 && !c.values && !c.state }

func changeOf(before, after *fleet.Cluster) clusterChange {
	was, is := target.InfoOf(before), target.InfoOf(after)
	change := clusterChange{cluster: is.Key(), labels: map[string]bool{}}
	for _, labels := range []map[string]string{was.Labels, is.Labels} {
		for key := range labels {
			old, had := was.Labels[key]
			value, has := is.Labels[key]
			if old != value || had != has {
				change.labels[key] = true
			}
		}
	}
	change.values = !maps.Equal(was.Annotations, is.Annotations) || !reflect.DeepEqual(was.TemplateValues, is.TemplateValues)
	change.state = was.DeploymentNamespace != is.DeploymentNamespace || was.Paused != is.Paused || was.Offline != is.Offline ||
		was.OffSchedule != is.OffSchedule || was.KubernetesVersion != is.KubernetesVersion || was.Protocol != is.Protocol ||
		was.Labelled() != is.Labelled() || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
	return change
}

// clusterEvents wakes up the bundles whose plan a change of a cluster may change, after a pause.
func (r *Reconciler) clusterEvents() handler.EventHandler {
	wake := func(ctx context.Context, cluster client.Object, queue requests, touched func(*fleet.Bundle) bool) {
		for _, key := range r.bundlesWhere(ctx, cluster, touched) {
			queue.AddAfter(key, clusterPause)
		}
	}
	everyone := func(*fleet.Bundle) bool { return true }
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requests) { wake(ctx, e.Object, queue, everyone) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) {
			before, ok := e.ObjectOld.(*fleet.Cluster)
			after, also := e.ObjectNew.(*fleet.Cluster)
			if !ok || !also {
				return
			}
			if change := changeOf(before, after); !change.none() {
				wake(ctx, after, queue, func(bundle *fleet.Bundle) bool {
					return r.interests.of(client.ObjectKeyFromObject(bundle)).touchedBy(bundle, change)
				})
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue requests) { wake(ctx, e.Object, queue, everyone) },
	}
}

// bundlesWhere lists the bundles that may reach the clusters of an object's namespace and are as wanted.
func (r *Reconciler) bundlesWhere(ctx context.Context, object client.Object, wanted func(*fleet.Bundle) bool) []reconcile.Request {
	namespaces := append(r.mappedNamespaces(ctx), object.GetNamespace())
	seen := map[string]bool{}
	var requests []reconcile.Request
	for _, namespace := range namespaces {
		if seen[namespace] {
			continue
		}
		seen[namespace] = true
		var list fleet.BundleList
		if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list bundles", "namespace", namespace)
			continue
		}
		for i := range list.Items {
			if wanted(&list.Items[i]) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
	}
	return requests
}

// groupReaches lists the bundles that a cluster group may be among the targets of.
func (r *Reconciler) groupReaches(ctx context.Context, group client.Object) []reconcile.Request {
	return r.bundlesWhere(ctx, group, func(bundle *fleet.Bundle) bool { return target.RefersToGroups(&bundle.Spec) })
}
