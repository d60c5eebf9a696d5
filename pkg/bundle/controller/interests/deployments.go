package interests

import (
	"context"
	"maps"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/values"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// deploymentPause is how long a bundle waits after a change of one of its deployments, so that those that
// change together are looked at together.
const deploymentPause = 100 * time.Millisecond

// deploymentEvents wakes bundles up for what somebody else did to their deployments, and for agents that
// miss values. What agents report otherwise arrives through the roll-up, but for a bundle whose clusters wait
// for others: its rollout goes on.
func (b *Bundles) deploymentEvents() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requests) {
			// A large one comes by and by: each pass over a bundle that waits for it sends what can go by then.
			b.wakeFollowers(queue, Pause, target.BundleOf(e.Object.GetLabels()))
			if !b.options.IsOwn(e.Object) {
				b.wakeNamed(ctx, queue, 0, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) {
			switch {
			case specTouched(e):
				if !b.options.IsOwn(e.ObjectNew) {
					b.wakeNamed(ctx, queue, 0, e.ObjectOld, e.ObjectNew)
				}
			case carriersTouched(e):
				for _, request := range bundleOf(ctx, e.ObjectNew) {
					queue.AddAfter(request, deploymentPause)
				}
			case availabilityTouched(e):
				for _, request := range bundleOf(ctx, e.ObjectNew) {
					if b.Of(request.NamespacedName).waits() {
						queue.AddAfter(request, deploymentPause)
					}
				}
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue requests) {
			b.wakeNamed(ctx, queue, deploymentPause, e.Object)
		},
	}
}

// wakeNamed wakes up the bundles of deployments and all others of their names.
func (b *Bundles) wakeNamed(ctx context.Context, queue requests, pause time.Duration, deployments ...client.Object) {
	woken := map[reconcile.Request]bool{}
	for _, deployment := range deployments {
		for _, request := range b.bundlesNamed(ctx, deployment) {
			if !woken[request] {
				woken[request] = true
				queue.AddAfter(request, pause)
			}
		}
	}
}

// specTouched tells changes of what the hub writes, and agents that begin to miss values.
func specTouched(e event.UpdateEvent) bool {
	return startsToWait(e) || e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
		!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
		e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
}

func startsToWait(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*fleet.BundleDeployment)
	after, also := e.ObjectNew.(*fleet.BundleDeployment)
	return ok && also && values.Awaited(after) && !values.Awaited(before)
}

// carriersTouched tells deployments that are, or were, on their way from one object to another.
func carriersTouched(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*fleet.BundleDeployment)
	after, also := e.ObjectNew.(*fleet.BundleDeployment)
	return ok && also && merge.Moved(before, after)
}

// availabilityTouched tells reports that a rollout may wait for.
func availabilityTouched(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*fleet.BundleDeployment)
	after, also := e.ObjectNew.(*fleet.BundleDeployment)
	return ok && also &&
		(before.Status.AppliedDeploymentID != after.Status.AppliedDeploymentID || status.Of(before) != status.Of(after))
}
