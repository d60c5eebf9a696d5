package pace

import "time"

const (
	// first, step and most space corrections that do not last: the first is made at once, the next ones
	// 2 s, 10 s, 50 s, 250 s and then five minutes after the one before. That makes five in ten minutes.
	first = 2 * time.Second
	step  = 5
	most  = 5 * time.Minute
	// calm is how long an object has to stay corrected, at least, to be corrected at once the next time.
	calm = 10 * time.Second
)

// Corrections are those of one object. The zero value is that of an object that never drifted.
type Corrections struct {
	count int
	last  time.Time
	err   error
}

// Wait returns how long the object has to be left as it is, 0 for not at all. Whoever drifts again long after
// it was corrected is no fighter: twice the delay, and the next correction counts as the first.
func (c *Corrections) Wait(now time.Time) time.Duration {
	if c.err == nil && now.Sub(c.last) > 2*max(calm, c.delay()) {
		c.count = 0
	}
	return max(0, c.last.Add(c.delay()).Sub(now))
}

// Made notes a correction, and what it failed of.
func (c *Corrections) Made(now time.Time, err error) { c.count, c.last, c.err = c.count+1, now, err }

// Err returns what the last correction failed of.
func (c *Corrections) Err() error { return c.err }

// Rest notes that there is nothing to correct.
func (c *Corrections) Rest() { c.err = nil }

func (c *Corrections) delay() time.Duration {
	if c.count == 0 {
		return 0
	}
	delay := first
	for range c.count - 1 {
		delay = min(step*delay, most)
	}
	return delay
}

// Sooner returns the shorter of two waits, of which 0 means that there is none.
func Sooner(a, b time.Duration) time.Duration {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}
