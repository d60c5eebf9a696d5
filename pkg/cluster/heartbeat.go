package cluster

import (
	"time"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	// DefaultInterval is taken for a lease that does not tell its duration.
	DefaultInterval = 15 * time.Second
	// LegacyInterval is how often an upstream agent, which keeps no lease, writes its last-seen time.
	LegacyInterval = 15 * time.Minute

	// MaxInterval is the longest duration of a lease that is believed: an agent that claims more could be
	// dead for years and count as ready.
	MaxInterval = time.Hour

	missedIntervals  = 3
	lostIntervals    = 5
	lostAtLeastAfter = 5 * time.Minute
	// freshToRecover damps flapping: one renewal through a bad link is no recovery.
	freshToRecover = 2
)

// Heartbeat is what the hub has observed of a cluster's agent. The zero value is an agent that was
// never heard.
type Heartbeat struct {
	// Seen is when the hub saw the last renewal, by the hub's own clock: a member's clock may be wrong.
	Seen time.Time
	// Interval at which the agent renews.
	Interval time.Duration
	// Fresh counts the renewals the hub saw in a row, none of them late.
	Fresh int
}

// FirstSight returns the heartbeat of a lease that a starting hub finds. How old it is cannot be told
// across two clocks, so that the grace period begins now and it counts as no renewal.
func FirstSight(now time.Time, interval time.Duration) Heartbeat {
	return Heartbeat{Seen: now, Interval: interval}
}

// Renewed returns the heartbeat after the hub saw another renewal.
func (h Heartbeat) Renewed(now time.Time, interval time.Duration) Heartbeat {
	fresh := h.Fresh + 1
	if h.Seen.IsZero() || now.Sub(h.Seen) >= h.missedAfter() {
		fresh = 1
	}
	return Heartbeat{Seen: now, Interval: interval, Fresh: fresh}
}

func (h Heartbeat) interval() time.Duration {
	if h.Interval <= 0 {
		return DefaultInterval
	}
	return min(h.Interval, MaxInterval)
}

func (h Heartbeat) missedAfter() time.Duration { return missedIntervals * h.interval() }

func (h Heartbeat) lostAfter() time.Duration {
	return max(lostAtLeastAfter, lostIntervals*h.interval())
}

// Phase returns the phase of a cluster whose phase was previous: Pending until it is first heard,
// NotReady after three missed intervals, Unknown after five of them or five minutes, whichever is
// longer. From NotReady and Unknown it takes two fresh renewals in a row to be Ready again.
func Phase(previous fleet.ClusterPhase, heartbeat Heartbeat, now time.Time) fleet.ClusterPhase {
	if heartbeat.Seen.IsZero() {
		return fleet.ClusterPending
	}
	down := previous == fleet.ClusterNotReady || previous == fleet.ClusterUnknown
	switch silent := now.Sub(heartbeat.Seen); {
	case silent >= heartbeat.lostAfter():
		return fleet.ClusterUnknown
	case down && (silent >= heartbeat.missedAfter() || heartbeat.Fresh < freshToRecover):
		return previous
	case silent >= heartbeat.missedAfter():
		return fleet.ClusterNotReady
	}
	return fleet.ClusterReady
}

// PhaseLasts returns how long after now the phase changes if nothing more is heard, zero or less when it is
// over; ends is false for one that nothing but a heartbeat ends.
func PhaseLasts(phase fleet.ClusterPhase, heartbeat Heartbeat, now time.Time) (left time.Duration, ends bool) {
	var limit time.Duration
	switch phase {
	case fleet.ClusterReady:
		limit = heartbeat.missedAfter()
	case fleet.ClusterNotReady:
		limit = heartbeat.lostAfter()
	default:
		return 0, false
	}
	return heartbeat.Seen.Add(limit).Sub(now), true
}
