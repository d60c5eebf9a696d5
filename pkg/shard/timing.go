package shard

import (
	"sync"
	"time"
)

// Timing of elections, with the meaning it has in client-go: a claim that was not renewed for Lease may be
// taken by others; its holder renews it every Retry, and stops when it could not for Deadline.
type Timing struct {
	Lease, Deadline, Retry time.Duration
}

// renewal remembers when a claim was renewed last. The time is read before the request is sent: nobody can have
// seen the renewal earlier.
type renewal struct {
	deadline time.Duration
	now      func() time.Time

	mu sync.Mutex
	at time.Time
}

func (r *renewal) renewed(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = at
}

// valid says that nobody can have taken the claim. The clock is monotonic, and goes on while the process is
// stopped.
func (r *renewal) valid() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.at.IsZero() && r.now().Sub(r.at) < r.deadline
}

// lapsed says that the claim was renewed once, and too long before a time to be sure that nobody took it.
func (r *renewal) lapsed(at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.at.IsZero() && at.Sub(r.at) >= r.deadline
}
