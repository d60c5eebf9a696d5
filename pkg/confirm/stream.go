package confirm

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// stream passes the events of a watch on.
type stream struct {
	from    watch.Interface
	events  chan watch.Event
	once    sync.Once
	stopped chan struct{}
	// initial are the keys of the list that the watch begins with, nil when it is over.
	initial map[string]bool
	seen    bool
}

// Stop ends the watch.
func (w *stream) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.from.Stop()
}

// ResultChan returns the events.
func (w *stream) ResultChan() <-chan watch.Event { return w.events }

func (w *stream) run(ctx context.Context, s *source, relist <-chan struct{}) {
	defer close(w.events)
	defer func() {
		w.from.Stop()
		for range w.from.ResultChan() { // whoever sends must not be left waiting
		}
	}()
	for {
		select {
		case <-w.stopped:
			return
		case <-relist:
			w.send(expired())
			return
		case event, more := <-w.from.ResultChan():
			if !more {
				return
			}
			if err := w.check(ctx, s, event); err != nil {
				w.send(refused(err))
				return
			}
			if !w.send(event) {
				return
			}
		}
	}
}

// check looks at an event before it is passed on; an error says that the list it ends is not believed.
func (w *stream) check(ctx context.Context, s *source, event watch.Event) error {
	switch {
	case event.Type == watch.Error:
		return nil
	case w.initial == nil || event.Type != watch.Bookmark:
		if event.Type == watch.Added && !w.seen {
			w.seen = true
			s.informers.saw(s.kind)
		}
		if w.initial != nil {
			s.note(w.initial, event.Object)
		}
		return nil
	}
	object, err := meta.Accessor(event.Object)
	if err != nil || object.GetAnnotations()[metav1.InitialEventsAnnotationKey] != "true" {
		return nil
	}
	keys := w.initial
	w.initial = nil
	return s.informers.check(ctx, s.kind, s.store, keys)
}

func (w *stream) send(event watch.Event) bool {
	select {
	case w.events <- event:
		return true
	case <-w.stopped:
		return false
	}
}
