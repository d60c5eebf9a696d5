package handover

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/pace"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	// patience is how long an uninstall waits for deployments that may take objects over.
	patience = 30 * time.Second
	retry    = 200 * time.Millisecond
	// claimRetry is how often it is looked whether what is kept for another was taken; a change of its owner is
	// heard of before.
	claimRetry = 2 * time.Second
)

// Spares returns, for a deployment, whether an object that it drops has to stay for now.
func (l *Ledger) Spares(name string) func(manifest.Key) bool {
	return func(key manifest.Key) bool {
		return isVolume(key) || l.claimantOf(name, key) != "" || l.othersPending(name)
	}
}

// isVolume tells what holds data that cannot be made anew.
func isVolume(key manifest.Key) bool {
	return key.GroupKind == schema.GroupKind{Kind: "PersistentVolumeClaim"}
}

// HasVolume says whether a release still has a volume that goes with it: one of its objects that, as it is known to
// live, carries the mark of the bundle's set.
func HasVolume(objects []*unstructured.Unstructured, setHash string, live func(*unstructured.Unstructured) *unstructured.Unstructured) bool {
	return slices.ContainsFunc(objects, func(object *unstructured.Unstructured) bool {
		if !isVolume(manifest.KeyOf(object)) {
			return false
		}
		known := live(object)
		return known != nil && known.GetLabels()[fleet.SetHashLabel] == setHash
	})
}

// Wait returns how long the uninstall of a deployment that leaves has to wait, 0 for not at all, for others that may
// take objects over. Those that were refused something before try again at once: they are returned the first time.
// A volume is worth more patience than the rest.
func (l *Ledger) Wait(name string, volume bool, now time.Time) (wait time.Duration, wake []string) {
	pending := l.othersPending(name)
	others := volume && l.othersWaiting(name)
	l.mu.Lock()
	defer l.mu.Unlock()
	began, waits := l.leaving[name]
	claimants := l.claimants(name)
	if !waits {
		began, wake = now, claimants
		l.leaving[name] = began
		for _, claimant := range claimants {
			l.retries[claimant] = true
		}
	}
	waited := now.Sub(began)
	switch {
	case (pending || len(claimants) > 0) && waited < patience:
		return retry, wake
	case volume && waited < l.grace, others:
		return claimRetry, wake
	}
	return 0, wake
}

// Division says what becomes of the objects that a release has dropped.
type Division struct {
	// Gone may be deleted: nobody can ask for them any more.
	Gone []*unstructured.Unstructured
	// Kept stay for now, and Reasons are words for people about those of them that somebody may have.
	Kept    []*unstructured.Unstructured
	Reasons []string
	// Again is when to look once more at what is kept, 0 for not at all.
	Again time.Duration
}

// Divide divides the objects that a deployment's release dropped some time ago.
func (l *Ledger) Divide(name string, objects []*unstructured.Unstructured, ago time.Duration) Division {
	var division Division
	pending, waiting := l.othersPending(name), l.othersWaiting(name)
	grace := l.grace - ago
	for _, object := range objects {
		key := manifest.KeyOf(object)
		claimant := l.claimantOf(name, key)
		switch {
		case claimant != "":
			division.keep(object, claimRetry, fmt.Sprintf("keeps %s for %s", key, claimant))
		case pending:
			division.keep(object, retry)
		case isVolume(key) && (grace > 0 || waiting):
			division.keep(object, max(grace, claimRetry), fmt.Sprintf("keeps %s, which another bundle may take over", key))
		default:
			division.Gone = append(division.Gone, object)
		}
	}
	return division
}

func (d *Division) keep(object *unstructured.Unstructured, again time.Duration, reasons ...string) {
	d.Kept = append(d.Kept, object)
	d.Reasons = append(d.Reasons, reasons...)
	d.Again = pace.Sooner(d.Again, again)
}
