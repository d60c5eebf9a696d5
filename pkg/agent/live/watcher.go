package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// lingers is how long the informer of a kind outlives its last user: bundles that are deployed anew
// often come back to it.
const lingers = time.Minute

// Handler is told of every change of an object: the value of its owner label before and after. It must
// not block.
type Handler func(setHash string)

// Watcher keeps objects by kind. Its methods may be called from several goroutines.
type Watcher struct {
	ctx     context.Context
	client  dynamic.Interface
	handler Handler
	log     logr.Logger

	mu    sync.Mutex
	kinds map[schema.GroupVersionResource]*kind
	users map[string]map[schema.GroupVersionResource]bool
}

type kind struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
	users    int
	idle     *time.Timer

	mu      sync.Mutex
	failure error
}

// NewWatcher returns a watcher whose informers end with the context.
func NewWatcher(ctx context.Context, client dynamic.Interface, handler Handler, log logr.Logger) *Watcher {
	return &Watcher{
		ctx: ctx, client: client, handler: handler, log: log,
		kinds: map[schema.GroupVersionResource]*kind{},
		users: map[string]map[schema.GroupVersionResource]bool{},
	}
}

// Track makes the watcher follow exactly these kinds for a user; none ends its use.
func (w *Watcher) Track(user string, resources []schema.GroupVersionResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := make(map[schema.GroupVersionResource]bool, len(resources))
	for _, resource := range resources {
		wanted[resource] = true
		if !w.users[user][resource] {
			w.use(resource)
		}
	}
	for resource := range w.users[user] {
		if !wanted[resource] {
			w.leave(resource)
		}
	}
	if len(wanted) == 0 {
		delete(w.users, user)
		return
	}
	w.users[user] = wanted
}

// Get returns the object as it was last heard of; nil means that there is none with the owner label.
// When known is false nothing can be said, for the reason given; without a reason the kind is only not
// listed yet, and the handler will be told when it is.
func (w *Watcher) Get(resource schema.GroupVersionResource, namespace, name string) (object *unstructured.Unstructured, known bool, reason string) {
	w.mu.Lock()
	followed := w.kinds[resource]
	w.mu.Unlock()
	if followed == nil {
		return nil, false, fmt.Sprintf("%s is not watched", resource.GroupResource())
	}
	if !followed.informer.HasSynced() {
		return nil, false, followed.reason(resource)
	}
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	item, found, err := followed.informer.GetStore().GetByKey(key)
	if err != nil || !found {
		return nil, err == nil, ""
	}
	object, _ = item.(*unstructured.Unstructured)
	return object, true, ""
}

// Restart lists a kind anew. API servers answer watches that began before a definition was changed by its old
// schema, without the fields that it lacks.
func (w *Watcher) Restart(resource schema.GroupVersionResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.kinds[resource]; old != nil && old.informer.HasSynced() {
		old.stop()
		fresh := w.start(resource)
		fresh.users, fresh.idle = old.users, old.idle
		w.kinds[resource] = fresh
	}
}

// Kinds returns how many kinds are watched.
func (w *Watcher) Kinds() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.kinds)
}

func (k *kind) reason(resource schema.GroupVersionResource) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure != nil {
		return fmt.Sprintf("watch %s: %v", resource.GroupResource(), k.failure)
	}
	return ""
}

func (w *Watcher) use(resource schema.GroupVersionResource) {
	followed := w.kinds[resource]
	if followed == nil {
		followed = w.start(resource)
		w.kinds[resource] = followed
	}
	followed.users++
	if followed.idle != nil {
		followed.idle.Stop()
		followed.idle = nil
	}
}

func (w *Watcher) leave(resource schema.GroupVersionResource) {
	followed := w.kinds[resource]
	followed.users--
	if followed.users > 0 {
		return
	}
	followed.idle = time.AfterFunc(lingers, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if present := w.kinds[resource]; present != nil && present.users == 0 {
			present.stop()
			delete(w.kinds, resource)
		}
	})
}

func (w *Watcher) start(resource schema.GroupVersionResource) *kind {
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, resource, metav1.NamespaceAll, 0,
		cache.Indexers{}, func(options *metav1.ListOptions) { options.LabelSelector = fleet.SetHashLabel }).Informer()
	ctx, stop := context.WithCancel(w.ctx)
	followed := &kind{informer: informer, stop: stop}
	// The errors below only concern informers that have already started.
	_ = informer.SetTransform(Trim)
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		followed.mu.Lock()
		followed.failure = err
		followed.mu.Unlock()
		cache.DefaultWatchErrorHandler(ctx, r, err)
	})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { w.tell(object) },
		UpdateFunc: func(before, after any) {
			if IsSame(before, after) {
				return
			}
			w.tell(before)
			if hashOf(before) != hashOf(after) {
				w.tell(after)
			}
		},
		DeleteFunc: func(object any) { w.tell(object) },
	})
	if err != nil {
		w.log.Error(err, "cannot hear of changes", "resource", resource.String())
		return followed
	}
	go informer.RunWithContext(ctx)
	go w.announce(ctx, registration, resource)
	return followed
}

// announce tells the users of a kind once that it has been listed: what was Unknown is known now.
func (w *Watcher) announce(ctx context.Context, registration cache.ResourceEventHandlerRegistration, resource schema.GroupVersionResource) {
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return
	}
	w.mu.Lock()
	var waiting []string
	for user, resources := range w.users {
		if resources[resource] {
			waiting = append(waiting, user)
		}
	}
	w.mu.Unlock()
	for _, user := range waiting {
		w.handler(user)
	}
}

func (w *Watcher) tell(object any) {
	if hash := hashOf(object); hash != "" {
		w.handler(hash)
	}
}

func hashOf(object any) string {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	meta, ok := object.(metav1.Object)
	if !ok {
		return ""
	}
	return meta.GetLabels()[fleet.SetHashLabel]
}

// IsSame says whether an informer's update shows the version that was known.
func IsSame(before, after any) bool {
	known, ok := before.(metav1.Object)
	present, alsoOK := after.(metav1.Object)
	return ok && alsoOK && known.GetResourceVersion() == present.GetResourceVersion()
}

// Trim drops, as an informer's transformation, what nobody reads and what makes up half of an object.
func Trim(object any) (any, error) {
	if meta, ok := object.(metav1.Object); ok {
		meta.SetManagedFields(nil)
	}
	return object, nil
}
