package faultproxy

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stream is a running watch.
type stream struct {
	request Request
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

// watch passes events on until the API server or somebody here ends it.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request, request Request, fault Fault, body io.Reader) {
	s, done := p.track(r.Context(), request)
	defer done()
	w.WriteHeader(http.StatusOK)
	flush(w)
	if fault.expire {
		s.cancel(errExpire)
	}
	events := make(chan []byte)
	go func() {
		defer close(events)
		decoder := json.NewDecoder(body)
		for {
			var raw json.RawMessage
			if decoder.Decode(&raw) != nil {
				return
			}
			select {
			case events <- raw:
			case <-s.ctx.Done():
				return
			}
		}
	}()
	initial := fault.empty && request.InitialEvents
	for {
		select {
		case <-s.ctx.Done():
			s.finish(w)
			return
		case raw, more := <-events:
			if !more {
				return
			}
			if initial {
				if initial = !endsInitial(raw); initial {
					continue
				}
			}
			if !s.deliver(w, fault, raw) {
				s.finish(w)
				return
			}
		}
	}
}

// deliver writes an event as the fault has it; false when the watch ended meanwhile.
func (s *stream) deliver(w http.ResponseWriter, fault Fault, raw []byte) bool {
	if fault.holdBack > 0 {
		select {
		case <-s.ctx.Done():
			return false
		case <-time.After(fault.holdBack):
		}
	}
	times := 1
	if fault.twice {
		times = 2
	}
	for range times {
		if _, err := w.Write(line(raw)); err != nil {
			return true // the client is gone, which ends the context
		}
	}
	flush(w)
	return true
}

// finish ends the stream as it was told to.
func (s *stream) finish(w http.ResponseWriter) {
	if context.Cause(s.ctx) != errExpire { //nolint:errorlint // our own, never wrapped
		panic(http.ErrAbortHandler)
	}
	if event, err := gone(); err == nil {
		_, _ = w.Write(line(event))
		flush(w)
	}
}

func flush(w http.ResponseWriter) {
	if flusher, ok := w.(http.Flusher); ok {
		flusher.Flush()
	}
}

// endsInitial says that an event is the bookmark after the objects that exist.
func endsInitial(raw []byte) bool {
	var event struct {
		Type   string
		Object struct{ Metadata metav1.ObjectMeta }
	}
	return json.Unmarshal(raw, &event) == nil && event.Type == "BOOKMARK" &&
		event.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey] == "true"
}
