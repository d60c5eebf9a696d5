package controller

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
)

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// heartbeats remembers when renewals were seen, and wakes up the clusters whose renewals stay away. It is
// lost with the process, which begins every grace period anew.
type heartbeats struct {
	now func() time.Time

	mu   sync.Mutex
	seen map[reconcile.Request]*observed
	// sooner wakes up watch when something is due before what it waits for.
	sooner chan struct{}
}

type observed struct {
	renewTime time.Time // as the member's clock has it: only compared with itself
	heartbeat cluster.Heartbeat
	// phase that the cluster's status tells; awaited says that it changes when nothing more is heard, and
	// that nobody was woken up for that yet.
	phase   fleet.ClusterPhase
	awaited bool
}

func newHeartbeats(now func() time.Time) *heartbeats {
	return &heartbeats{now: now, seen: map[reconcile.Request]*observed{}, sooner: make(chan struct{}, 1)}
}

// observe returns the heartbeat of a cluster whose lease is given, nil for none.
func (h *heartbeats) observe(request reconcile.Request, stored *fleet.Cluster, lease *coordinationv1.Lease) cluster.Heartbeat {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, known := h.seen[request]
	if lease == nil || lease.Spec.RenewTime == nil {
		if known && !last.renewTime.IsZero() {
			return last.heartbeat
		}
		return withoutLease(stored)
	}
	if !known {
		last = &observed{}
		h.seen[request] = last
	}
	interval := cluster.DefaultInterval
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		interval = time.Duration(*seconds) * time.Second
	}
	renewTime := lease.Spec.RenewTime.Time
	switch {
	case !last.renewTime.IsZero() && renewTime.Equal(last.renewTime):
		last.heartbeat.Interval = interval
	case !last.renewTime.IsZero() || stored.Status.Agent.LastSeen.IsZero():
		last.heartbeat = last.heartbeat.Renewed(h.now(), interval)
	default:
		last.heartbeat = cluster.FirstSight(h.now(), interval)
	}
	last.renewTime = renewTime
	return last.heartbeat
}

// withoutLease judges by the time in the status: an upstream agent writes it, our own hub did.
func withoutLease(stored *fleet.Cluster) cluster.Heartbeat {
	seen := stored.Status.Agent.LastSeen.Time
	if seen.IsZero() {
		return cluster.Heartbeat{}
	}
	interval := cluster.LegacyInterval
	if versions := stored.Status.Versions; versions != nil && versions.Protocol > 0 {
		interval = cluster.DefaultInterval
	}
	return cluster.Heartbeat{Seen: seen, Interval: interval, Fresh: 2}
}

// look takes note of what a cluster's status tells after a pass, and wakes the cluster up again when that
// ends because nothing more is heard.
func (h *heartbeats) look(request reconcile.Request, phase fleet.ClusterPhase, heartbeat cluster.Heartbeat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	entry := h.seen[request]
	if entry == nil {
		entry = &observed{}
		h.seen[request] = entry
	}
	entry.phase, entry.awaited = phase, true
	if entry.renewTime.IsZero() { // else what was observed may be newer already
		entry.heartbeat = heartbeat
	}
	select {
	case h.sooner <- struct{}{}:
	default: // it looks anyway
	}
}

func (h *heartbeats) forget(request reconcile.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seen, request)
}

// watch enqueues clusters whose phase has changed because nothing was heard of them. One timer serves all:
// it goes off when the first of them would be late.
func (h *heartbeats) watch(ctx context.Context, queue requests) error {
	go func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-h.sooner:
			case <-timer.C:
			}
			late, next := h.late()
			for _, request := range late {
				queue.Add(request)
			}
			timer.Reset(next)
		}
	}()
	return nil
}

// longestLook bounds the time until all are looked at again.
const longestLook = time.Hour

// late returns the clusters whose phase is over, each once, and the time until others may be.
func (h *heartbeats) late() (late []reconcile.Request, next time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	next = longestLook
	for request, entry := range h.seen {
		if !entry.awaited {
			continue
		}
		left, ends := cluster.PhaseLasts(entry.phase, entry.heartbeat, now)
		switch {
		case !ends:
		case left <= 0:
			entry.awaited = false
			late = append(late, request)
		default:
			next = min(next, left)
		}
	}
	return late, next
}

// renewals wakes a cluster up when its lease says something new. A renewal alone is noted and nothing else:
// of a thousand clusters one comes every few milliseconds.
func (r *clusters) renewals() handler.TypedEventHandler[*coordinationv1.Lease, reconcile.Request] {
	wake := func(ctx context.Context, lease *coordinationv1.Lease, queue requests) {
		for _, request := range r.ownerOf(ctx, lease.Namespace) {
			queue.Add(request)
		}
	}
	return handler.TypedFuncs[*coordinationv1.Lease, reconcile.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*coordinationv1.Lease], queue requests) {
			wake(ctx, e.Object, queue)
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*coordinationv1.Lease], queue requests) {
			for _, request := range r.ownerOf(ctx, e.ObjectNew.Namespace) {
				result := "noted"
				if r.tellsNews(ctx, request, e.ObjectNew) {
					result = "news"
					queue.Add(request)
				}
				r.options.Metrics.heard(result)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*coordinationv1.Lease], queue requests) {
			wake(ctx, e.Object, queue)
		},
	}
}

// tellsNews says that a cluster's status is another one with this lease.
func (r *clusters) tellsNews(ctx context.Context, request reconcile.Request, lease *coordinationv1.Lease) bool {
	var stored fleet.Cluster
	if err := r.client.Get(ctx, request.NamespacedName, &stored); err != nil {
		return true
	}
	snapshot := r.snapshot(&stored, nil, lease)
	return !equality.Semantic.DeepEqual(stored.Status, cluster.Status(snapshot))
}
