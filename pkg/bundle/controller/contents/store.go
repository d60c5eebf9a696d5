package contents

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cached"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/shard"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// Options are what a Store works with. All but the last must be set.
type Options struct {
	// Client writes, and reads from the cache: Bundles there are trimmed (see pkg/content).
	Client client.Client
	// Reader reads from the API server.
	Reader client.Reader
	// Keeper reads and removes contents in registries.
	Keeper *store.Keeper
	Events events.EventRecorder
	// Caches are those that Client reads from.
	Caches *confirm.Informers
	// Deployments are those that the cache shows, with the index DeploymentIndex.
	Deployments *cached.Objects[*fleet.BundleDeployment]
	Shards      *shard.Shards
	Now         func() time.Time
	// KeepUnused is how long contents on the hub are kept that nobody refers to; 0 means two minutes.
	KeepUnused time.Duration
}

// Store keeps the files of bundles. Make it with Register.
type Store struct {
	client   client.Client
	reader   client.Reader
	keeper   *store.Keeper
	hub      *hub
	accesses *accesses
	// secrets caches the metadata of those that lead to registries.
	secrets cache.Cache
}

// Register returns the Store, with the controllers that collect what nobody refers to added to a manager.
func Register(mgr ctrl.Manager, options Options) (*Store, error) {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &fleet.Bundle{}, contentsIndex, contentsOf); err != nil {
		return nil, fmt.Errorf("index bundles by contents: %w", err)
	}
	onHub := newHub(options, mgr.GetCache())
	if err := onHub.register(mgr, options.Shards); err != nil {
		return nil, err
	}
	secrets, err := cached.Secrets(mgr, options.Caches, fleet.OCIStorageSecretType, cache.TransformStripManagedFields())
	if err != nil {
		return nil, err
	}
	err = secrets.IndexField(context.Background(), cached.SecretMetadata(), nameIndex, func(object client.Object) []string {
		return []string{object.GetName()}
	})
	if err != nil {
		return nil, fmt.Errorf("index Secrets by name: %w", err)
	}
	collector := &artifacts{
		client: options.Client, cached: secrets, deployments: options.Deployments, caches: options.Caches,
		keeper: options.Keeper, events: options.Events, now: options.Now, lost: map[types.NamespacedName]bool{},
	}
	records := source.Kind(secrets, cached.SecretMetadata(), &handler.TypedEnqueueRequestForObject[*metav1.PartialObjectMetadata]{})
	if err := collector.register(mgr, options.Shards, records); err != nil {
		return nil, err
	}
	return &Store{
		client: options.Client, reader: options.Reader, keeper: options.Keeper, hub: onHub, secrets: secrets,
		accesses: &accesses{client: options.Client, reader: options.Reader, cached: secrets},
	}, nil
}

// Ensure stores the files that a Bundle holds in the Content of the given id, unless that is known to exist. An error
// that is ErrChanged says that the bundle has other files by now.
func (s *Store) Ensure(ctx context.Context, bundle *fleet.Bundle, id string) error {
	return s.hub.ensure(ctx, bundle, id)
}

// Present returns an error of class Waiting unless the files are there that a Bundle does not hold, and where they are in
// a registry.
func (s *Store) Present(ctx context.Context, bundle *fleet.Bundle) (reference string, err error) {
	switch {
	case content.OnHub(&bundle.Spec):
		return "", s.hub.present(ctx, bundle)
	case content.InRegistry(&bundle.Spec):
		secret, err := s.accesses.present(ctx, bundle)
		if err != nil {
			return "", err
		}
		if where := secret.Annotations[registry.ReferenceAnnotation]; where != "" {
			return registry.Access{Reference: where}.Show(bundle.Spec.ContentsID), nil
		}
	}
	return "", nil
}

// Files reads the files of a bundle, wherever they are, which must be those that id names.
func (s *Store) Files(ctx context.Context, key types.NamespacedName, id string) (content.Manifest, error) {
	var bundle fleet.Bundle
	if err := s.reader.Get(ctx, key, &bundle); err != nil {
		return content.Manifest{}, fmt.Errorf("read bundle %s: %w", key, err)
	}
	switch {
	case bundle.Spec.ContentsID == "":
		manifest, _, err := held(&bundle, id)
		return manifest, err
	case bundle.Spec.ContentsID == id && content.OnHub(&bundle.Spec):
		return store.Read(ctx, s.reader, id)
	case bundle.Spec.ContentsID == id:
		return s.keeper.Pull(ctx, key.Namespace, id)
	}
	return content.Manifest{}, changedMeanwhile(&bundle)
}

// Copies returns the Secrets that let the agents of a bundle's deployments read contents in registries, for one pass.
func (s *Store) Copies(bundle types.NamespacedName) *Copies {
	return &Copies{accesses: s.accesses, namespace: bundle.Namespace, read: map[string]*corev1.Secret{}}
}

// Watch lets the controller of Bundles look at those again whose files, or Secrets that lead to them, come, change or go.
func (s *Store) Watch(build *builder.Builder) {
	build.WatchesMetadata(&fleet.Content{}, handler.EnqueueRequestsFromMapFunc(s.bundlesOf), builder.WithPredicates(comesOrGoes()))
	build.WatchesRawSource(source.Kind(s.secrets, cached.SecretMetadata(), s.bundleAccesses()))
}

// comesOrGoes lets through what appears and vanishes.
func comesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}

// bundlesOf lists the Bundles whose files came or went.
func (s *Store) bundlesOf(ctx context.Context, object client.Object) []reconcile.Request {
	var bundles fleet.BundleList
	options := []client.ListOption{client.MatchingFields{contentsIndex: object.GetName()}, client.UnsafeDisableDeepCopy}
	if object.GetNamespace() != "" {
		options = append(options, client.InNamespace(object.GetNamespace()))
	}
	if err := s.client.List(ctx, &bundles, options...); err != nil {
		return nil
	}
	found := make([]reconcile.Request, 0, len(bundles.Items))
	for i := range bundles.Items {
		found = append(found, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&bundles.Items[i])})
	}
	return found
}

// bundleAccesses wakes the Bundles up whose contents are in a registry, when the Secret that says where comes,
// changes or goes, or a copy of it goes.
func (s *Store) bundleAccesses() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	wake := func(ctx context.Context, object client.Object, queue requests) {
		for _, request := range s.bundlesOf(ctx, object) {
			queue.Add(request)
		}
	}
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], queue requests) {
			wake(ctx, e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], queue requests) {
			wake(ctx, e.ObjectNew, queue)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*metav1.PartialObjectMetadata], queue requests) {
			if labels := e.Object.GetLabels(); labels[fleet.BundleNamespaceLabel] != "" {
				// A member's copy has its bundle's name.
				queue.Add(reconcile.Request{NamespacedName: target.BundleOf(labels)})
				return
			}
			wake(ctx, e.Object, queue)
		},
	}
}
