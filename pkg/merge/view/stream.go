package view

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// stream passes the events of a watch on.
type stream struct {
	from    watch.Interface
	events  chan watch.Event
	once    sync.Once
	stopped chan struct{}
}

// Stop ends the watch.
func (w *stream) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.from.Stop()
}

// ResultChan returns the events.
func (w *stream) ResultChan() <-chan watch.Event { return w.events }

func (w *stream) run(s *Source) {
	defer close(w.events)
	defer func() {
		w.from.Stop()
		for range w.from.ResultChan() { // whoever sends must not be left waiting
		}
	}()
	if !w.deliver(s) {
		return
	}
	for {
		select {
		case <-w.stopped:
			return
		case event, more := <-w.from.ResultChan():
			if !more {
				return
			}
			if !w.take(s, event) || !w.deliver(s) {
				return
			}
		}
	}
}

// take notes an event, unless another watch or list has begun: what came after it may be known by now.
func (w *stream) take(s *Source, event watch.Event) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.current != w {
		return false
	}
	s.left = append(s.left, s.events(event)...)
	return true
}

// deliver sends what is left.
func (w *stream) deliver(s *Source) bool {
	for {
		next, goesOn := w.next(s)
		if next == nil {
			return goesOn
		}
		select {
		case w.events <- *next:
		case <-w.stopped:
			return false
		}
		if !w.delivered(s) {
			return false
		}
	}
}

// next returns the event that is to be delivered, nil for none.
func (w *stream) next(s *Source) (next *watch.Event, goesOn bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.current != w || len(s.left) == 0 {
		return nil, s.current == w
	}
	return &s.left[0], true
}

func (w *stream) delivered(s *Source) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.current != w {
		return false
	}
	s.sent = append(s.sent, s.left[0])
	s.sent = slices.Clone(s.sent[max(0, len(s.sent)-keptSent):])
	if s.left = s.left[1:]; len(s.left) == 0 {
		s.left = nil
	}
	return true
}
