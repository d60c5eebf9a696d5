package interests

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/values"
)

// requests are the Bundles that wait to be looked at.
type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// bundleValues wakes the Bundle up whose values came, changed or went.
func (b *Bundles) bundleValues() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	wake := func(object client.Object, queue requests) {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], queue requests) {
			wake(e.Object, queue)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], queue requests) {
			wake(e.ObjectNew, queue)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*metav1.PartialObjectMetadata], queue requests) {
			// The next pass finds out that they are missing and says so; whoever made the Bundle writes them again.
			b.options.ForgetValues(client.ObjectKeyFromObject(e.Object))
			wake(e.Object, queue)
		},
	}
}

// deploymentValues wakes the Bundle up whose deployment lost its values.
func (b *Bundles) deploymentValues() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*metav1.PartialObjectMetadata], queue requests) {
			var deployment fleet.BundleDeployment
			if err := b.options.Client.Get(ctx, client.ObjectKeyFromObject(e.Object), &deployment); err != nil || !values.Needed(&deployment) {
				return
			}
			for _, request := range bundleOf(ctx, &deployment) {
				queue.Add(request)
			}
		},
	}
}
