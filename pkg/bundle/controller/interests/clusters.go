package interests

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Pause is how long bundles wait after a change of a cluster, so that many clusters that change
// together are looked at together.
const Pause = 250 * time.Millisecond

// clusterEvents wakes up the bundles whose plan a change of a cluster may change, after a pause.
func (b *Bundles) clusterEvents() handler.EventHandler {
	wake := func(ctx context.Context, cluster client.Object, queue requests, touched func(*fleet.Bundle) bool) {
		for _, key := range b.bundlesWhere(ctx, cluster, touched) {
			queue.AddAfter(key, Pause)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requests) {
			wake(ctx, e.Object, queue, everyBundle)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) {
			before, ok := e.ObjectOld.(*fleet.Cluster)
			after, also := e.ObjectNew.(*fleet.Cluster)
			if !ok || !also {
				return
			}
			if change := changeOf(before, after); !change.none() {
				wake(ctx, after, queue, func(bundle *fleet.Bundle) bool {
					return b.Of(client.ObjectKeyFromObject(bundle)).touchedBy(bundle, change)
				})
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue requests) {
			wake(ctx, e.Object, queue, everyBundle)
		},
	}
}
