package contents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cached"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/shard"
)

const (
	// lostFor is how long an artifact stays that lost its last user, and neverUsedFor one that has none yet:
	// it may still be on its way to the registry.
	lostFor      = 10 * time.Second
	neverUsedFor = 15 * time.Minute
)

// artifacts removes contents from registries, and the Secrets that tell of them, when nobody refers to them
// any more. A Secret is the record of an artifact: while the registry is away both stay, and bundles and
// deployments go meanwhile.
type artifacts struct {
	client client.Client
	cached client.Reader
	// deployments are those that the cache shows.
	deployments *cached.Objects[*fleet.BundleDeployment]
	caches      *confirm.Informers
	keeper      *store.Keeper
	events      events.EventRecorder
	now         func() time.Time

	mutex sync.Mutex
	lost  map[types.NamespacedName]bool
}

func (a *artifacts) register(mgr ctrl.Manager, shards *shard.Shards, secrets source.Source) error {
	build := ctrl.NewControllerManagedBy(mgr).
		Named("artifact").
		WatchesRawSource(secrets).
		Watches(&fleet.BundleDeployment{}, a.lostReferences(accessesOfDeployment)).
		Watches(&fleet.Bundle{}, a.lostReferences(accessesOfBundle)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2})
	return shards.CompleteFrom(a.cached, mgr.GetScheme(), build, cached.SecretMetadata(), a)
}

// lostReferences remembers what lost a user before it enqueues it.
func (a *artifacts) lostReferences(referred func(client.Object) []types.NamespacedName) handler.EventHandler {
	return lostReferences(referred, func(key types.NamespacedName) {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		a.lost[key] = true
	})
}

// accessesOfDeployment lists the Secrets a deployment needs: its copy, and the bundle's it is a copy of.
func accessesOfDeployment(object client.Object) []types.NamespacedName {
	deployment, ok := object.(*fleet.BundleDeployment)
	if !ok || !deployment.Spec.OCIContents {
		return nil
	}
	var keys []types.NamespacedName
	for _, id := range contentOf(object) {
		keys = append(keys, types.NamespacedName{Namespace: deployment.Namespace, Name: id},
			types.NamespacedName{Namespace: deployment.Labels[fleet.BundleNamespaceLabel], Name: id})
	}
	return keys
}

func accessesOfBundle(object client.Object) []types.NamespacedName {
	if bundle, ok := object.(*fleet.Bundle); ok && content.InRegistry(&bundle.Spec) {
		return []types.NamespacedName{{Namespace: bundle.Namespace, Name: bundle.Spec.ContentsID}}
	}
	return nil
}

// Reconcile removes what a Secret stands for once nobody needs it.
func (a *artifacts) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secret := cached.SecretMetadata()
	err := a.cached.Get(ctx, request.NamespacedName, secret)
	if apierrors.IsNotFound(err) {
		a.forget(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	// People's own Secrets of this type are none of our records.
	if err != nil || secret.Labels[fleet.InternalSecretLabel] != "true" || !secret.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, err
	}
	wait, err := a.wait(ctx, secret)
	if err != nil || wait != 0 {
		return reconcile.Result{RequeueAfter: max(wait, 0)}, err
	}
	wait, err = a.keeper.Drop(ctx, request.NamespacedName, func(current *corev1.Secret) (store.Fate, error) { return a.fate(ctx, current) })
	if err != nil {
		a.complain(secret, err)
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

func (a *artifacts) forget(key types.NamespacedName) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.lost, key)
}

// inUse is the wait of what somebody refers to.
const inUse = -1

// wait returns how long the Secret stays in any case, inUse when there is no end of it in sight.
func (a *artifacts) wait(ctx context.Context, secret client.Object) (time.Duration, error) {
	used, err := a.used(ctx, secret)
	key := client.ObjectKeyFromObject(secret)
	if err != nil {
		return 0, err
	}
	if used {
		a.forget(key)
		return inUse, nil
	}
	a.mutex.Lock()
	grace := neverUsedFor
	if a.lost[key] {
		grace = lostFor
	}
	a.mutex.Unlock()
	return keptFor(grace, a.now(), secret.GetCreationTimestamp().Time, store.NeededAt(secret.GetAnnotations())), nil
}

// fate decides on a Secret as it is now.
func (a *artifacts) fate(ctx context.Context, current *corev1.Secret) (store.Fate, error) {
	wait, err := a.wait(ctx, current)
	if err != nil || wait != 0 {
		return store.KeepBoth, err
	}
	if !a.caches.Seen(&fleet.BundleDeployment{}) || !a.caches.Seen(&fleet.Bundle{}) {
		return store.KeepBoth, nil // that nobody needs it may be what a wrong first list says
	}
	if current.Labels[fleet.BundleNamespaceLabel] != "" {
		return store.DropSecret, nil // a member's copy
	}
	var others metav1.PartialObjectMetadataList
	others.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := a.cached.List(ctx, &others, client.MatchingFields{nameIndex: current.Name}); err != nil {
		return store.KeepBoth, fmt.Errorf("list Secrets named %s: %w", current.Name, err)
	}
	for i := range others.Items {
		other := &others.Items[i]
		where := other.Annotations[registry.ReferenceAnnotation]
		if other.UID != current.UID && other.Labels[fleet.BundleNamespaceLabel] == "" &&
			(where == "" || where == current.Annotations[registry.ReferenceAnnotation]) {
			return store.DropSecret, nil // bundles of another namespace use the same artifact
		}
	}
	return store.DropBoth, nil
}

// used says that a bundle or deployment needs a Secret.
func (a *artifacts) used(ctx context.Context, secret client.Object) (bool, error) {
	deployments, err := a.deployments.By(ctx, DeploymentIndex, secret.GetName())
	if err != nil {
		return true, fmt.Errorf("list users of Secret %s: %w", secret.GetName(), err)
	}
	isCopy := secret.GetLabels()[fleet.BundleNamespaceLabel] != ""
	for _, deployment := range deployments {
		of := deployment.Labels[fleet.BundleNamespaceLabel]
		if isCopy {
			of = deployment.Namespace
		}
		if deployment.Spec.OCIContents && of == secret.GetNamespace() {
			return true, nil
		}
	}
	if isCopy {
		return false, nil
	}
	var bundles fleet.BundleList
	err = a.client.List(ctx, &bundles, client.InNamespace(secret.GetNamespace()), client.MatchingFields{contentsIndex: secret.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return true, fmt.Errorf("list users of Secret %s: %w", secret.GetName(), err)
	}
	for i := range bundles.Items {
		if content.InRegistry(&bundles.Items[i].Spec) {
			return true, nil
		}
	}
	return false, nil
}

// complain tells in an event what cannot be removed. The bundle may be gone; events outlive it.
func (a *artifacts) complain(secret client.Object, err error) {
	if apierrors.IsConflict(err) || errors.Is(err, context.Canceled) {
		return
	}
	bundle := &fleet.Bundle{}
	bundle.APIVersion, bundle.Kind = fleet.GroupVersion.String(), "Bundle"
	bundle.Namespace, bundle.Name = secret.GetNamespace(), secret.GetLabels()[fleet.BundleLabel]
	a.events.Eventf(bundle, nil, corev1.EventTypeWarning, "FailedToDeleteOCIArtifact", "Delete", "%s", cut(err.Error()))
}

// cut shortens a text to what an event takes.
func cut(text string) string {
	const most = 1000
	if len(text) <= most {
		return text
	}
	return text[:most]
}
