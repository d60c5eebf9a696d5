package pace

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/depends"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// What failed a moment ago is not tried again at once, unless it is something else that is wanted now, or events end
// what it failed of.
func TestAttempts(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		err   error
		id    string
		after time.Duration
		want  bool
	}{
		"nothing failed":       {nil, "1", 0, true},
		"the same at once":     {broken, "1", 0, false},
		"the same later":       {broken, "1", time.Minute, true},
		"another id":           {broken, "2", 0, true},
		"waits for something":  {fault.New(fault.Waiting, "X", "later"), "1", 0, true},
		"goes in a circle":     {fault.New(fault.Stalled, depends.ReasonCycle, "a, b, a"), "1", 0, true},
		"a person must act":    {fault.New(fault.Stalled, "X", "no"), "1", time.Second, false},
		"a person, by and by ": {fault.New(fault.Stalled, "X", "no"), "1", time.Minute, true},
	} {
		var attempts Attempts
		if test.err != nil {
			attempts.Failed("1", test.err, now)
		}
		if got := attempts.May(test.id, now.Add(test.after)); got != test.want {
			t.Errorf("%s: may be tried is %t", name, got)
		}
	}
}

// Failures of one class in a row count, and space the attempts; another class or id begins anew.
func TestAttemptsCount(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var attempts Attempts
	if wait := attempts.Wait(now); wait != 0 {
		t.Errorf("wait %s for nothing", wait)
	}
	broken, stalled := errors.New("broken"), fault.New(fault.Stalled, "X", "no")
	for i, test := range []struct {
		id   string
		err  error
		want int
	}{{"1", broken, 1}, {"1", broken, 2}, {"1", stalled, 1}, {"1", stalled, 2}, {"2", stalled, 1}, {"2", stalled, 2}} {
		if got := attempts.Failed(test.id, test.err, now); got != test.want {
			t.Errorf("attempt %d: counted %d, want %d", i, got, test.want)
		}
	}
	if attempts.Err("1") != nil || !errors.Is(attempts.Err("2"), stalled) {
		t.Errorf("errors %v and %v", attempts.Err("1"), attempts.Err("2"))
	}
	if wait := attempts.Wait(now); wait < 10*time.Second || wait > 12*time.Second {
		t.Errorf("wait %s after the second failure that a person must mend", wait)
	}
	if wait := attempts.Wait(now.Add(time.Hour)); wait <= 0 {
		t.Errorf("wait %s for an attempt that is due: that is no wait at all", wait)
	}
}
