package feed

import (
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/status"
)

// pace spreads the notifications of one object: none for the first, then one an interval.
type pace struct {
	interval time.Duration
	now      func() time.Time

	mutex sync.Mutex
	next  map[status.Parent]time.Time
	// swept is when old entries were last dropped.
	swept time.Time
}

func newPace(interval time.Duration, now func() time.Time) *pace {
	return &pace{interval: interval, now: now, next: map[status.Parent]time.Time{}}
}

// delay returns how long a notification has to wait. Those that fall into one interval get the same end.
func (p *pace) delay(parent status.Parent) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.now()
	due, seen := p.next[parent]
	switch {
	case !seen || !now.Before(due.Add(p.interval)):
		p.next[parent] = now
		p.forgetOld(now)
		return 0
	case now.Before(due):
		return due.Sub(now)
	}
	p.next[parent] = due.Add(p.interval)
	return p.next[parent].Sub(now)
}

// forgetOld keeps the map from growing with everything that ever changed. It goes through all of it, so not
// more than once an interval.
func (p *pace) forgetOld(now time.Time) {
	if len(p.next) < 4096 || now.Sub(p.swept) < p.interval {
		return
	}
	p.swept = now
	for parent, due := range p.next {
		if now.After(due.Add(p.interval)) {
			delete(p.next, parent)
		}
	}
}
