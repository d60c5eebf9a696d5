package controller

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// paceEvery is how often a parent is worked on at most while its parts change.
const paceEvery = time.Second / 2

// pace lets the first change of a parent through at once and then one each half second, so that a wave of
// changes below costs few writes above.
type pace struct {
	now func() time.Time

	mu      sync.Mutex
	slots   map[reconcile.Request]time.Time // when a request was last let through, or will be
	sweepAt int                             // so many slots are looked through for old ones
}

const sweepFrom = 1024

func newPace(now func() time.Time) *pace {
	return &pace{now: now, slots: map[reconcile.Request]time.Time{}, sweepAt: sweepFrom}
}

// delay returns how long to wait with a request that comes now.
func (p *pace) delay(request reconcile.Request) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	slot, known := p.slots[request]
	switch {
	case !known || now.Sub(slot) >= paceEvery:
		slot = now
	case !slot.After(now):
		slot = slot.Add(paceEvery)
	}
	p.slots[request] = slot
	p.sweep(now)
	return max(slot.Sub(now), 0)
}

func (p *pace) sweep(now time.Time) {
	if len(p.slots) < p.sweepAt {
		return
	}
	maps.DeleteFunc(p.slots, func(_ reconcile.Request, slot time.Time) bool { return now.Sub(slot) >= paceEvery })
	p.sweepAt = max(sweepFrom, 2*len(p.slots))
}

// handler enqueues what parents names for an event, paced.
func (p *pace) handler(parents handler.MapFunc) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, q queue, objects ...client.Object) {
		for _, object := range objects {
			for _, request := range parents(ctx, object) {
				q.AddAfter(request, p.delay(request))
			}
		}
	}
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q queue) { enqueue(ctx, q, e.Object) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { enqueue(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { enqueue(ctx, q, e.Object) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { enqueue(ctx, q, e.Object) },
	}
}
