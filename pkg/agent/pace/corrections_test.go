package pace

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// However fast somebody takes a correction back, and whether corrections succeed or not, there are at most six
// in ten minutes; and who drifts once in a while is corrected at once, every time.
func TestCorrections(t *testing.T) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		// every is how long after a correction the object drifts again.
		every time.Duration
		err   error
		// most and least corrections within ten minutes.
		least, most int
	}{
		"taken back at once":           {every: time.Millisecond, least: 4, most: 6},
		"taken back after two seconds": {every: 2 * time.Second, least: 4, most: 6},
		"taken back after 15 seconds":  {every: 15 * time.Second, least: 4, most: 6},
		"never works":                  {every: time.Millisecond, err: errors.New("refused"), least: 4, most: 6},
		"every two minutes":            {every: 2 * time.Minute, least: 5, most: 5},
	} {
		t.Run(name, func(t *testing.T) {
			var c Corrections
			now, made := start, 0
			for now.Sub(start) < 10*time.Minute {
				if wait := c.Wait(now); wait > 0 {
					now = now.Add(wait)
					continue
				}
				c.Made(now, test.err)
				made++
				now = now.Add(test.every)
			}
			if made < test.least || made > test.most {
				t.Errorf("%d corrections, want %d to %d", made, test.least, test.most)
			}
		})
	}
}

func TestCorrectionsForgive(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var c Corrections
	for range 4 {
		now = now.Add(c.Wait(now))
		c.Made(now, nil)
	}
	if c.Wait(now) == 0 {
		t.Error("a fight goes on at full speed")
	}
	now = now.Add(time.Hour)
	for range 2 { // a fight an hour ago does not slow down what follows
		if wait := c.Wait(now); wait > 0 {
			t.Fatalf("has to wait %s", wait)
		}
		c.Made(now, nil)
		now = now.Add(time.Minute)
	}
}

func TestBackoff(t *testing.T) {
	for name, test := range map[string]struct {
		err         error
		attempts    int
		least, most time.Duration
	}{
		"unknown":    {errors.New("x"), 1, time.Second, 2 * time.Second},
		"many times": {errors.New("x"), 40, time.Minute, 67 * time.Second},
		"waiting":    {fault.New(fault.Waiting, "A", "x"), 1, 2 * time.Second, 3 * time.Second},
		"stalled":    {fault.New(fault.Stalled, "A", "x"), 1, 5 * time.Second, 6 * time.Second},
		"for long":   {fault.New(fault.Denied, "A", "x"), 30, 5 * time.Minute, 331 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Backoff(test.err, test.attempts); got < test.least || got > test.most {
				t.Errorf("%s, want %s to %s", got, test.least, test.most)
			}
		})
	}
}

func TestSooner(t *testing.T) {
	for _, test := range [][3]time.Duration{{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {1, 2, 1}, {2, 1, 1}} {
		if got := Sooner(test[0], test[1]); got != test[2] {
			t.Errorf("of %d and %d: %d", test[0], test[1], got)
		}
	}
}
