package removal

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
)

const (
	// massDelete is how many releases may always go because a list lacks their deployments; beyond, at
	// most half of all may.
	massDelete = 5
	// listedSoon is how soon a deployment is looked for again that the hub has and the list lacks.
	listedSoon = time.Second
)

// Hub is asked about what a list lacks.
type Hub interface {
	// Get returns a deployment.
	Get(ctx context.Context, name string) (*fleet.BundleDeployment, error)
	// IsEmpty says whether there is no deployment at all.
	IsEmpty(ctx context.Context) (bool, error)
}

// Doubt says how long what is missing is doubted.
type Doubt struct {
	// ConfirmAfter is how long a deployment must have been absent from lists before it is gone.
	ConfirmAfter time.Duration
	// HeldFor is when to look again at a removal that is held back.
	HeldFor time.Duration
}

// Departures are the BundleDeployments that are not there any more. Its methods may be called from several goroutines.
type Departures struct {
	hub   Hub
	doubt Doubt
	clock clock.PassiveClock
	log   logr.Logger

	mu   sync.Mutex
	gone map[string]departure
}

// departure is what is known of a BundleDeployment that is not there any more.
type departure struct {
	// certain means that the hub told of its deletion.
	certain bool
	// since is when a list first lacked it and the hub confirmed that.
	since time.Time
}

// NewDepartures returns departures, none as yet.
func NewDepartures(hub Hub, doubt Doubt, clock clock.PassiveClock, log logr.Logger) *Departures {
	return &Departures{hub: hub, doubt: doubt, clock: clock, log: log, gone: map[string]departure{}}
}

// Deleted notes how a deployment went: certainly, because the hub told of it, or because a new list lacks it.
func (d *Departures) Deleted(name string, certain bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := d.gone[name]
	left.certain = certain
	d.gone[name] = left
}

// Forget notes that a deployment is listed, or that its departure is over.
func (d *Departures) Forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.gone, name)
}

// Verdict is what is to be done about a deployment that is not listed.
type Verdict struct {
	// Gone means that its releases have to go.
	Gone bool
	// Listed means that the hub has it: it is the list that lacks it.
	Listed bool
	// Again is when to ask once more about what is not gone.
	Again time.Duration
}

// Confirm asks the hub about a deployment that is not listed, one of so many that are known in all.
func (d *Departures) Confirm(ctx context.Context, name string, all int) (Verdict, error) {
	_, err := d.hub.Get(ctx, name)
	switch {
	case err == nil:
		return Verdict{Listed: true, Again: listedSoon}, nil
	case !confirm.Gone(err):
		return Verdict{}, fmt.Errorf("confirm that %s is gone: %w", name, err)
	}
	now := d.clock.Now()
	left := d.denied(name, now)
	if left.certain {
		return Verdict{Gone: true}, nil
	}
	if wait := left.since.Add(d.doubt.ConfirmAfter).Sub(now); wait > 0 {
		return Verdict{Again: wait}, nil
	}
	if held, err := d.holdsBack(ctx, all); err != nil || held {
		return Verdict{Again: d.doubt.HeldFor}, err
	}
	return Verdict{Gone: true}, nil
}

// denied notes that the hub denies a deployment.
func (d *Departures) denied(name string, now time.Time) departure {
	d.mu.Lock()
	defer d.mu.Unlock()
	left := d.gone[name]
	if left.since.IsZero() {
		left.since = now
	}
	d.gone[name] = left
	return left
}

// holdsBack says whether the hub's list is not to be believed: it is empty, or lacks more than half of
// what is deployed.
func (d *Departures) holdsBack(ctx context.Context, all int) (bool, error) {
	empty, err := d.hub.IsEmpty(ctx)
	if err != nil {
		return true, fmt.Errorf("confirm the list of deployments: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	inferred := 0
	for _, left := range d.gone {
		if !left.since.IsZero() && !left.certain {
			inferred++
		}
	}
	held := empty || inferred > massDelete && inferred > all/2
	if held {
		d.log.Info("removal held back", "deployments", all, "missing", inferred, "listEmpty", empty)
	}
	return held, nil
}
