package confirm

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

// source lists and watches for one informer and checks what it is told.
type source struct {
	from      cache.ListerWatcherWithContext
	plain     cache.ListerWatcher
	kind      schema.GroupVersionKind
	informers *Informers
	// store is what the informer knows. It is set before the informer runs.
	store cache.Store
	// pages are the keys of a list so far that comes in several; a reflector lists one after the other.
	pages map[string]bool
}

// List and Watch satisfy cache.ListerWatcher.
func (s *source) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch is WatchWithContext.
func (s *source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported is asked by reflectors (client-go/util/watchlist).
func (s *source) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(s.plain)
}

// ListWithContext lists, and refuses a list that lacks what exists.
func (s *source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := s.from.ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	paged, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	if options.Continue == "" || s.pages == nil {
		s.pages = map[string]bool{}
	}
	err = meta.EachListItem(list, func(object runtime.Object) error {
		s.note(s.pages, object)
		return nil
	})
	if err == nil && paged.GetContinue() == "" {
		err = s.informers.check(ctx, s.kind, s.store, s.pages)
		s.pages = nil
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// WatchWithContext watches. A list that the watch begins with is checked as others are.
func (s *source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	relist := s.informers.relistOf(s.kind) // before it begins: nothing asked for later is missed
	from, err := s.from.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	checked := &stream{from: from, events: make(chan watch.Event), stopped: make(chan struct{})}
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		checked.initial = map[string]bool{}
	}
	go checked.run(ctx, s, relist)
	return checked, nil
}

func (s *source) note(keys map[string]bool, object runtime.Object) {
	if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
		keys[key] = true
	}
}

// expired has a reflector list anew.
func expired() watch.Event {
	status := apierrors.NewResourceExpired("the cache was found to be wrong").Status()
	return watch.Event{Type: watch.Error, Object: &status}
}

// refused has a reflector try again after a pause.
func refused(err error) watch.Event {
	status := apierrors.NewTooManyRequests(err.Error(), 1).Status()
	status.Code = http.StatusTooManyRequests
	return watch.Event{Type: watch.Error, Object: &status}
}
