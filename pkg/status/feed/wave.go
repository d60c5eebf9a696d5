package feed

import (
	"math"
	"time"
)

// A wave begins with waveFrom changes in about half a second and ends when fewer than waveTo come in that time. It
// comes to each parent several times, which is why its end is worth waiting for.
const (
	waveFrom, waveTo = 10, 5
	half             = 500 * time.Millisecond
)

// wave is a time in which much changes everywhere.
type wave struct {
	// newest is the newest change, and recent how many there were lately, older ones counting less and less.
	newest time.Time
	recent float64
	on     bool
}

// changed notes a change.
func (w *wave) changed(now time.Time) {
	w.recent = w.recent*math.Exp(-float64(now.Sub(w.newest))/float64(half)) + 1
	w.newest = now
	w.on = w.recent >= waveFrom || w.on && w.recent >= waveTo
}
