package spot

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/fairlead-dev/fairlead/pkg/agent/live"
)

// most bounds the watches of a watcher.
const most = 64

// Target is what one watch sees: objects of a kind in a namespace that both selectors mean.
type Target struct {
	Resource      schema.GroupVersionResource
	Namespace     string
	LabelSelector string
	FieldSelector string
	Identity      string
}

// Clients returns the client of an identity, as Target names it.
type Clients func(identity string) (dynamic.Interface, error)

// Handler is told that something changed for a user. It must not block.
type Handler func(user string)

// Watcher keeps the objects of its targets. Its methods may be called from several goroutines.
type Watcher struct {
	ctx     context.Context
	clients Clients
	handler Handler
	log     logr.Logger

	mu      sync.Mutex
	watches map[Target]*spotted
	users   map[string]map[Target]bool
}

type spotted struct {
	informer cache.SharedIndexInformer
	stop     context.CancelFunc
}

// New returns a watcher whose watches end with the context.
func New(ctx context.Context, clients Clients, handler Handler, log logr.Logger) *Watcher {
	return &Watcher{
		ctx: ctx, clients: clients, handler: handler, log: log,
		watches: map[Target]*spotted{}, users: map[string]map[Target]bool{},
	}
}

// Track makes the watcher watch exactly these targets for a user; none ends its use.
func (w *Watcher) Track(user string, targets []Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := make(map[Target]bool, len(targets))
	for _, target := range targets {
		wanted[target] = true
	}
	before := w.users[user]
	w.users[user] = wanted
	if len(wanted) == 0 {
		delete(w.users, user)
	}
	for target := range before {
		if !wanted[target] && !w.isUsed(target) && w.watches[target] != nil {
			w.watches[target].stop()
			delete(w.watches, target)
		}
	}
	for target := range wanted {
		if w.watches[target] == nil && len(w.watches) < most {
			w.start(target)
		}
	}
}

// List returns the objects of a target, and false while they are not known.
func (w *Watcher) List(target Target) ([]*unstructured.Unstructured, bool) {
	w.mu.Lock()
	found := w.watches[target]
	w.mu.Unlock()
	if found == nil || !found.informer.HasSynced() {
		return nil, false
	}
	var objects []*unstructured.Unstructured
	for _, item := range found.informer.GetStore().List() {
		if object, ok := item.(*unstructured.Unstructured); ok {
			objects = append(objects, object)
		}
	}
	return objects, true
}

// Watches returns how many watches there are.
func (w *Watcher) Watches() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watches)
}

func (w *Watcher) isUsed(target Target) bool {
	for _, targets := range w.users {
		if targets[target] {
			return true
		}
	}
	return false
}

func (w *Watcher) start(target Target) {
	client, err := w.clients(target.Identity)
	if err != nil {
		w.log.V(1).Info("cannot watch", "resource", target.Resource.Resource, "namespace", target.Namespace, "reason", err.Error())
		return
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, target.Resource, target.Namespace, 0, cache.Indexers{}, func(options *metav1.ListOptions) {
		options.LabelSelector, options.FieldSelector = target.LabelSelector, target.FieldSelector
	}).Informer()
	ctx, stop := context.WithCancel(w.ctx)
	// The errors below only concern informers that have already started.
	_ = informer.SetTransform(trim)
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		// An identity may not be allowed to see them.
		w.log.V(1).Info("cannot watch", "resource", target.Resource.Resource, "namespace", target.Namespace, "reason", err.Error())
	})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.tell(target) },
		UpdateFunc: func(before, after any) {
			if !live.IsSame(before, after) {
				w.tell(target)
			}
		},
		DeleteFunc: func(any) { w.tell(target) },
	})
	w.watches[target] = &spotted{informer: informer, stop: stop}
	go informer.RunWithContext(ctx)
}

func (w *Watcher) tell(target Target) {
	w.mu.Lock()
	var users []string
	for user, targets := range w.users {
		if targets[target] {
			users = append(users, user)
		}
	}
	w.mu.Unlock()
	for _, user := range users {
		w.handler(user)
	}
}

// trim drops what nobody reads here.
func trim(object any) (any, error) {
	if pod, ok := object.(*unstructured.Unstructured); ok && pod.GetKind() == "Pod" {
		delete(pod.Object, "spec")
	}
	return live.Trim(object)
}
