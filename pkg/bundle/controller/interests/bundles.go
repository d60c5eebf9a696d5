package interests

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cached"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// nameIndex finds the Bundles of a name in all namespaces.
const nameIndex = "name"

// Options are what Bundles work with. All must be set.
type Options struct {
	// Client reads from the cache.
	Client client.Reader
	// IsOwn says that a deployment is as the last pass over its bundle wrote it.
	IsOwn func(deployment client.Object) bool
	// Count is called for each plan, with the clusters that were evaluated and those that were remembered.
	Count func(evaluated, cached int)
	// ValuesOfBundles and ValuesOfDeployments cache the names of the Secrets with values.
	ValuesOfBundles, ValuesOfDeployments cache.Cache
	// ForgetValues is called when the values of a bundle go.
	ForgetValues func(bundle types.NamespacedName)
}

// Bundles finds the bundles that care for a change. Make it with New.
type Bundles struct {
	options Options

	mutex   sync.Mutex
	bundles map[types.NamespacedName]*Bundle
	// followers are the bundles that wait for others, by what they wait for, and awaited the other way round.
	followers map[types.NamespacedName]map[types.NamespacedName]bool
	awaited   map[types.NamespacedName][]types.NamespacedName
}

// New returns Bundles that know of no plan yet, with the index they need added to the cache that Client reads from.
func New(indexer client.FieldIndexer, options Options) (*Bundles, error) {
	err := indexer.IndexField(context.Background(), &fleet.Bundle{}, nameIndex, func(object client.Object) []string {
		return []string{object.GetName()}
	})
	if err != nil {
		return nil, fmt.Errorf("index bundles by name: %w", err)
	}
	return &Bundles{
		options: options, bundles: map[types.NamespacedName]*Bundle{},
		followers: map[types.NamespacedName]map[types.NamespacedName]bool{}, awaited: map[types.NamespacedName][]types.NamespacedName{},
	}, nil
}

// Of returns what is known of a bundle, which may be nothing yet.
func (b *Bundles) Of(key types.NamespacedName) *Bundle {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	found := b.bundles[key]
	if found == nil {
		found = &Bundle{count: b.options.Count, awaits: func(others []types.NamespacedName) { b.follow(key, others) }}
		b.bundles[key] = found
	}
	return found
}

// Forget drops what is known of a bundle that is gone.
func (b *Bundles) Forget(key types.NamespacedName) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.bundles, key)
	b.unfollow(key)
}

// Watch lets the controller of Bundles look at those again for which something else has changed.
func (b *Bundles) Watch(build *builder.Builder) {
	build.
		Watches(&fleet.Bundle{}, b.bundleEvents()).
		Watches(&fleet.BundleDeployment{}, b.deploymentEvents()).
		Watches(&fleet.Cluster{}, b.clusterEvents()).
		Watches(&fleet.ClusterGroup{}, handler.EnqueueRequestsFromMapFunc(b.groupReaches), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&fleet.BundleNamespaceMapping{}, handler.EnqueueRequestsFromMapFunc(b.bundlesBeside)).
		Watches(&fleet.Policy{}, handler.EnqueueRequestsFromMapFunc(b.bundlesBeside)).
		Watches(&fleet.GitRepoRestriction{}, handler.EnqueueRequestsFromMapFunc(b.bundlesBeside)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(b.bundlesMapped), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(source.Kind(b.options.ValuesOfBundles, cached.SecretMetadata(), b.bundleValues())).
		WatchesRawSource(source.Kind(b.options.ValuesOfDeployments, cached.SecretMetadata(), b.deploymentValues()))
}

// groupReaches lists the bundles that a cluster group may be among the targets of.
func (b *Bundles) groupReaches(ctx context.Context, group client.Object) []reconcile.Request {
	return b.bundlesWhere(ctx, group, func(bundle *fleet.Bundle) bool { return target.RefersToGroups(&bundle.Spec) })
}

// bundlesWhere lists the bundles that may reach the clusters of an object's namespace and are as wanted.
func (b *Bundles) bundlesWhere(ctx context.Context, object client.Object, wanted func(*fleet.Bundle) bool) []reconcile.Request {
	requests := b.bundlesIn(ctx, object.GetNamespace(), wanted)
	for _, namespace := range b.mappedNamespaces(ctx) {
		if namespace != object.GetNamespace() {
			requests = append(requests, b.bundlesIn(ctx, namespace, wanted)...)
		}
	}
	return requests
}

func bundleOf(_ context.Context, object client.Object) []reconcile.Request {
	key := target.BundleOf(object.GetLabels())
	if key.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// bundlesNamed lists the Bundle of a deployment and all others of its name: one of them may wait for the
// deployment to go, so that it can have its own of that name.
func (b *Bundles) bundlesNamed(ctx context.Context, object client.Object) []reconcile.Request {
	requests := bundleOf(ctx, object)
	var list fleet.BundleList
	if err := b.options.Client.List(ctx, &list, client.MatchingFields{nameIndex: object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list bundles", "name", object.GetName())
	}
	for i := range list.Items {
		if request := (reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}); !slices.Contains(requests, request) {
			requests = append(requests, request)
		}
	}
	return requests
}

// bundlesBeside lists the bundles of an object's namespace.
func (b *Bundles) bundlesBeside(ctx context.Context, object client.Object) []reconcile.Request {
	return b.bundlesIn(ctx, object.GetNamespace(), everyBundle)
}

// bundlesMapped lists the bundles of all namespaces with a mapping: any of them may reach further.
func (b *Bundles) bundlesMapped(ctx context.Context, _ client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, namespace := range b.mappedNamespaces(ctx) {
		requests = append(requests, b.bundlesIn(ctx, namespace, everyBundle)...)
	}
	return requests
}

// mappedNamespaces lists the namespaces with a mapping, each once.
func (b *Bundles) mappedNamespaces(ctx context.Context) []string {
	var mappings fleet.BundleNamespaceMappingList
	if err := b.options.Client.List(ctx, &mappings); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list bundlenamespacemappings")
		return nil
	}
	var namespaces []string
	for i := range mappings.Items {
		if namespace := mappings.Items[i].Namespace; !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

// bundlesIn lists the bundles of a namespace that are as wanted.
func (b *Bundles) bundlesIn(ctx context.Context, namespace string, wanted func(*fleet.Bundle) bool) []reconcile.Request {
	var list fleet.BundleList
	if err := b.options.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list bundles", "namespace", namespace)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if wanted(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}

func everyBundle(*fleet.Bundle) bool { return true }
