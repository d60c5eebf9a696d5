package pace

import (
	"math/rand/v2"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/depends"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Attempts are those at one deployment that have not succeeded yet. The zero value is none.
type Attempts struct {
	deploymentID string
	err          error
	count        int
	next         time.Time
}

// May says whether a deployment id may be tried now: the last attempt at the same did not fail a moment ago, or failed
// of what events end.
func (a *Attempts) May(deploymentID string, now time.Time) bool {
	return a.Err(deploymentID) == nil || isWoken(a.err) || !now.Before(a.next)
}

// isWoken says whether events end what a deployment failed of, so that it is tried again with each.
func isWoken(err error) bool {
	return fault.ClassOf(err) == fault.Waiting || fault.ReasonOf(err) == depends.ReasonCycle
}

// Failed notes an attempt and what it failed of, and returns how many have failed so in a row.
func (a *Attempts) Failed(deploymentID string, err error, now time.Time) int {
	count := 1
	if last := a.Err(deploymentID); last != nil && fault.ClassOf(last) == fault.ClassOf(err) {
		count = a.count + 1
	}
	*a = Attempts{deploymentID: deploymentID, err: err, count: count, next: now.Add(Backoff(err, count))}
	return count
}

// Err returns what the last attempt at a deployment id failed of, nil for nothing.
func (a *Attempts) Err(deploymentID string) error {
	if a.deploymentID != deploymentID {
		return nil
	}
	return a.err
}

// Wait returns how long the next attempt has to wait, 0 when none has failed.
func (a *Attempts) Wait(now time.Time) time.Duration {
	if a.err == nil {
		return 0
	}
	return max(a.next.Sub(now), time.Millisecond)
}

// Backoff returns how long to wait after so many failed attempts, with some jitter: what a person has to
// mend is tried more rarely than what mends itself.
func Backoff(err error, attempts int) time.Duration {
	first, most := time.Second, time.Minute
	switch fault.ClassOf(err) {
	case fault.Waiting:
		first, most = 2*time.Second, 15*time.Second
	case fault.Stalled, fault.Denied:
		first, most = 5*time.Second, 5*time.Minute
	}
	wait := most
	if attempts < 12 {
		wait = min(first<<(attempts-1), most)
	}
	return wait + rand.N(wait/10+1)
}
