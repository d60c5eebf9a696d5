package contents

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// DeploymentIndex finds BundleDeployments by the contents they refer to, now or staged (OfDeployment).
const DeploymentIndex = "content"

// Indexes of Bundles that do not hold their files, by the Content or the Secret that leads to them, and of such Secrets by
// name.
const (
	contentsIndex = "contents"
	nameIndex     = "name"
)

// collectPause is how long what has lost a user waits to be looked at: the deployments of a bundle leave it one after
// the other.
const collectPause = time.Second

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// lostReferences enqueues what an object no longer refers to, after lost was told.
func lostReferences(referred func(client.Object) []types.NamespacedName, lost func(types.NamespacedName)) handler.EventHandler {
	enqueue := func(keys []types.NamespacedName, queue requests) {
		for _, key := range keys {
			lost(key)
			queue.AddAfter(reconcile.Request{NamespacedName: key}, collectPause)
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue requests) {
			left := referred(e.ObjectNew)
			enqueue(slices.DeleteFunc(referred(e.ObjectOld), func(key types.NamespacedName) bool { return slices.Contains(left, key) }), queue)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue requests) {
			enqueue(referred(e.Object), queue)
		},
	}
}

// lostContents enqueues Contents by the names that an object no longer has.
func lostContents(referred func(client.Object) []string) handler.EventHandler {
	return lostReferences(func(object client.Object) []types.NamespacedName {
		var keys []types.NamespacedName
		for _, name := range referred(object) {
			keys = append(keys, types.NamespacedName{Name: name})
		}
		return keys
	}, func(types.NamespacedName) {})
}

// contentOf lists the contents a BundleDeployment refers to.
func contentOf(object client.Object) []string {
	if deployment, ok := object.(*fleet.BundleDeployment); ok {
		return OfDeployment(deployment)
	}
	return nil
}

// OfDeployment lists the ids of the contents a deployment refers to.
func OfDeployment(deployment *fleet.BundleDeployment) []string {
	now, _, _ := strings.Cut(deployment.Spec.DeploymentID, ":")
	staged, _, _ := strings.Cut(deployment.Spec.StagedDeploymentID, ":")
	switch {
	case now == "" && staged == "":
		return nil
	case now == staged || staged == "":
		return []string{now}
	case now == "":
		return []string{staged}
	}
	return []string{now, staged}
}

// contentsOf lists the contents a Bundle refers to instead of holding them.
func contentsOf(object client.Object) []string {
	if bundle, ok := object.(*fleet.Bundle); ok && bundle.Spec.ContentsID != "" {
		return []string{bundle.Spec.ContentsID}
	}
	return nil
}
