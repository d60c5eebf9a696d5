package controller

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
)

// heartbeats remembers when renewals were seen. It is lost with the process, which begins every
// grace period anew.
type heartbeats struct {
	now func() time.Time

	mu   sync.Mutex
	seen map[string]observed // by cluster namespace
}

type observed struct {
	renewTime time.Time // as the member's clock has it: only compared with itself
	heartbeat cluster.Heartbeat
}

func newHeartbeats(now func() time.Time) *heartbeats {
	return &heartbeats{now: now, seen: map[string]observed{}}
}

// observe returns the heartbeat of a cluster whose lease is given, nil for none.
func (h *heartbeats) observe(stored *fleet.Cluster, lease *coordinationv1.Lease) cluster.Heartbeat {
	h.mu.Lock()
	defer h.mu.Unlock()
	namespace := cluster.Namespace(stored).Name
	last, known := h.seen[namespace]
	if lease == nil || lease.Spec.RenewTime == nil {
		if known {
			return last.heartbeat
		}
		return withoutLease(stored)
	}
	interval := cluster.DefaultInterval
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		interval = time.Duration(*seconds) * time.Second
	}
	renewTime := lease.Spec.RenewTime.Time
	switch {
	case known && renewTime.Equal(last.renewTime):
		last.heartbeat.Interval = interval
	case known || stored.Status.Agent.LastSeen.IsZero():
		last.heartbeat = last.heartbeat.Renewed(h.now(), interval)
	default:
		last.heartbeat = cluster.FirstSight(h.now(), interval)
	}
	last.renewTime = renewTime
	h.seen[namespace] = last
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

func (h *heartbeats) forget(namespace string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seen, namespace)
}
