package ledger

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/merge/carrier"
)

// ErrBehind says that the cache does not show the last pass yet; the event that brings it wakes us up.
var ErrBehind = fault.New(fault.Waiting, "CacheBehind", "the last changes are being written")

// Behind says that the cache does not show the newest write of the last pass. It asks for that one alone,
// because a list of a thousand deployments is no small thing to look at ten times a second.
func (l *Ledger) Behind(ctx context.Context, key types.NamespacedName) bool {
	namespace, version, at, ok := l.last(key)
	if !ok {
		return false
	}
	var newest fleet.BundleDeployment
	named := types.NamespacedName{Namespace: namespace, Name: key.Name}
	if err := l.options.Client.Get(ctx, named, &newest, client.UnsafeDisableDeepCopy); err == nil && notOlder(newest.ResourceVersion, version) {
		return false
	}
	if l.options.Now().Sub(at) < forgetWrites {
		return true
	}
	// Either the watch stands still, and planned on what was before everything would be written once more, or
	// somebody has deleted it.
	stored, err := carrier.Find(ctx, l.options.Reader, named)
	if apierrors.IsNotFound(err) || err == nil && !notOlder(stored.ResourceVersion, version) {
		return false
	}
	if l.options.Now().Sub(at) > mistrustAfter {
		l.options.Caches.Refresh(&fleet.BundleDeployment{}) // no event is to come of what a first list lacked
	}
	return true
}

// Exists says that an object was found on the API server that the cache did not show. What it should show by now makes
// it wrong: it is listed anew.
func (l *Ledger) Exists(found client.Object) {
	if l.options.Now().Sub(found.GetCreationTimestamp().Time) > forgetWrites {
		l.options.Caches.Refresh(found)
	}
}
