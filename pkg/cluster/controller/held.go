package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
)

// bundleByHeld finds the Bundles that a cluster ("namespace/name") is kept from.
const bundleByHeld = "held"

// heldOn lists the clusters that a Bundle says it is kept from. A Bundle names the first few.
func heldOn(object client.Object) []string {
	bundle, ok := object.(*fleet.Bundle)
	if !ok {
		return nil
	}
	var clusters []string
	for i := range bundle.Status.Summary.NonReadyResources {
		resource := &bundle.Status.Summary.NonReadyResources[i]
		if _, held := parent.HeldBack(resource); held {
			clusters = append(clusters, resource.Name)
		}
	}
	return clusters
}

// keptFrom lists the bundles that a cluster is kept from, as its own status counts them.
func (r *clusters) keptFrom(ctx context.Context, stored *fleet.Cluster) ([]parent.Held, error) {
	var bundles fleet.BundleList
	options := []client.ListOption{client.MatchingFields{bundleByHeld: stored.Namespace + "/" + stored.Name}, client.UnsafeDisableDeepCopy}
	if err := r.client.List(ctx, &bundles, options...); err != nil {
		return nil, fmt.Errorf("list the bundles that Cluster %s/%s is kept from: %w", stored.Namespace, stored.Name, err)
	}
	var held []parent.Held
	for i := range bundles.Items {
		bundle := &bundles.Items[i]
		one := parent.Held{Name: bundle.Name, Message: whyHeld(bundle, stored)}
		var deployment fleet.BundleDeployment
		key := types.NamespacedName{Namespace: cluster.ReadyNamespace(stored), Name: bundle.Name}
		err := r.client.Get(ctx, key, &deployment)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read deployment %s: %w", key, err)
		}
		if err == nil && deployment.Labels[fleet.BundleNamespaceLabel] == bundle.Namespace {
			one.State = status.Of(&deployment)
		}
		held = append(held, one)
	}
	slices.SortFunc(held, func(a, b parent.Held) int { return strings.Compare(a.Name, b.Name) })
	return held, nil
}

func whyHeld(bundle *fleet.Bundle, stored *fleet.Cluster) string {
	for i := range bundle.Status.Summary.NonReadyResources {
		resource := &bundle.Status.Summary.NonReadyResources[i]
		if why, held := parent.HeldBack(resource); held && resource.Name == stored.Namespace+"/"+stored.Name {
			return why
		}
	}
	return ""
}

// heldEvents wakes the clusters up that a Bundle begins or ceases to be kept from.
func heldEvents() handler.EventHandler {
	enqueue := func(names []string, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, name := range names {
			if namespace, name, ok := strings.Cut(name, "/"); ok {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(heldOn(e.Object), queue)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, after := heldOn(e.ObjectOld), heldOn(e.ObjectNew)
			for _, lists := range [][2][]string{{before, after}, {after, before}} {
				enqueue(slices.DeleteFunc(slices.Clone(lists[0]), func(name string) bool { return slices.Contains(lists[1], name) }), queue)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(heldOn(e.Object), queue)
		},
	}
}
