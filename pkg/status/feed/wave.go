package feed

import (
	"math"
	"time"
)

// A wave begins with burst changes in about half a second. It lasts until fewer than trickle come in that time, and
// fewer than flood in about four seconds: one that stands still for a moment, because the API server does, goes on.
const (
	burst, trickle, flood = 10, 5, 40
	lately                = 500 * time.Millisecond
	before                = 4 * time.Second
)

// wave is a time in which much changes everywhere. It comes to each parent several times, which is why its end is
// worth waiting for.
type wave struct {
	// newest is the newest change. The numbers of changes weigh older ones less and less.
	newest        time.Time
	short, longer float64
	on            bool
}

// changed notes a change.
func (w *wave) changed(now time.Time) {
	passed := float64(now.Sub(w.newest))
	w.short = w.short*math.Exp(-passed/float64(lately)) + 1
	w.longer = w.longer*math.Exp(-passed/float64(before)) + 1
	w.newest = now
	w.on = w.short >= burst || w.on && (w.short >= trickle || w.longer >= flood)
}
