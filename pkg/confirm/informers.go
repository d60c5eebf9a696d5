package confirm

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Lookup reads the metadata of one object from the API server.
type Lookup func(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*metav1.ObjectMeta, error)

// Informers makes informers that believe no list which lacks what exists. All methods may be called from
// several goroutines.
type Informers struct {
	lookup Lookup
	kindOf func(runtime.Object) (schema.GroupVersionKind, error)
	now    func() time.Time

	mu    sync.Mutex
	known map[schema.GroupVersionKind]*kind
}

// kind is what is kept of all informers of a kind.
type kind struct {
	// seen says that this process has seen an object of the kind.
	seen      bool
	refreshed time.Time
	// relist is closed to have all watches of the kind begin anew with a list.
	relist chan struct{}
}

// refreshEvery is how often a kind is listed anew at most.
const refreshEvery = 5 * time.Second

// NewInformers returns a maker of informers of objects whose kind kindOf tells.
func NewInformers(lookup Lookup, kindOf func(runtime.Object) (schema.GroupVersionKind, error), now func() time.Time) *Informers {
	return &Informers{lookup: lookup, kindOf: kindOf, now: now, known: map[schema.GroupVersionKind]*kind{}}
}

// New returns a shared informer, as cache.NewSharedIndexInformer does. It has the signature that
// controller-runtime's cache asks for.
func (i *Informers) New(from cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	gvk, err := i.kindOf(example)
	if err != nil {
		return cache.NewSharedIndexInformer(from, example, resync, indexers) // which reports it
	}
	checked := &source{from: cache.ToListerWatcherWithContext(from), plain: from, kind: gvk, informers: i}
	informer := cache.NewSharedIndexInformer(checked, example, resync, indexers)
	checked.store = informer.GetStore()
	return informer
}

// Refresh has the caches of an object's kind listed anew, because one of them was found to be wrong. Within a
// while it does so once.
func (i *Informers) Refresh(example runtime.Object) {
	gvk, err := i.kindOf(example)
	if err != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	k := i.of(gvk)
	if now := i.now(); now.Sub(k.refreshed) >= refreshEvery {
		k.refreshed = now
		close(k.relist)
		k.relist = make(chan struct{})
	}
}

// Seen says whether this process has ever seen an object of the kind. Until then, that there is none may
// be what a wrong first list says.
func (i *Informers) Seen(example runtime.Object) bool {
	gvk, err := i.kindOf(example)
	if err != nil {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.of(gvk).seen
}

func (i *Informers) of(gvk schema.GroupVersionKind) *kind {
	k := i.known[gvk]
	if k == nil {
		k = &kind{relist: make(chan struct{})}
		i.known[gvk] = k
	}
	return k
}

func (i *Informers) saw(gvk schema.GroupVersionKind) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.of(gvk).seen = true
}

func (i *Informers) relistOf(gvk schema.GroupVersionKind) <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.of(gvk).relist
}

// asked is how many of the missing objects are looked up: a list that lacks what exists lacks much of it.
const asked = 5

// check compares the keys of a new list with what a store holds. An error says that the list is wrong, or that
// it could not be told.
func (i *Informers) check(ctx context.Context, gvk schema.GroupVersionKind, store cache.Store, listed map[string]bool) error {
	if len(listed) > 0 {
		i.saw(gvk)
	}
	looked := 0
	for key, object := range missing(store, listed) {
		before, err := meta.Accessor(object)
		if err != nil {
			continue
		}
		if looked++; looked > asked {
			return nil
		}
		name := types.NamespacedName{Namespace: before.GetNamespace(), Name: before.GetName()}
		now, err := i.lookup(ctx, gvk, name)
		switch {
		case Gone(err):
		case err != nil:
			return fmt.Errorf("a list of %s lacks %s, and it cannot be told whether that is gone: %w", gvk.Kind, key, err)
		case now.UID == before.GetUID() && now.DeletionTimestamp.IsZero() && maps.Equal(now.Labels, before.GetLabels()):
			return fmt.Errorf("a list of %s is not believed: it lacks %s, which exists", gvk.Kind, key)
		}
	}
	return nil
}

// missing returns what a store holds and a list lacks.
func missing(store cache.Store, listed map[string]bool) map[string]any {
	found := map[string]any{}
	if store == nil {
		return found
	}
	for _, object := range store.List() {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil && !listed[key] {
			found[key] = object
		}
	}
	return found
}

// KindOf returns a function that tells the kind of typed objects by a scheme, and of others by themselves.
func KindOf(scheme *runtime.Scheme) func(runtime.Object) (schema.GroupVersionKind, error) {
	return func(object runtime.Object) (schema.GroupVersionKind, error) {
		if gvk := object.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
			return gvk, nil
		}
		kinds, _, err := scheme.ObjectKinds(object)
		if err != nil || len(kinds) == 0 {
			return schema.GroupVersionKind{}, fmt.Errorf("no kind is known for %s", reflect.TypeOf(object))
		}
		return kinds[0], nil
	}
}
