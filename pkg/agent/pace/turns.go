package pace

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Turns are the corrections of a bundle's objects.
type Turns map[manifest.Key]*Corrections

// Due returns the objects that differ, are to be corrected and whose turn has come, and how long the next of the
// others has to wait, 0 when there is none.
func (t Turns) Due(objects []report.Sight, wanted *fleet.CorrectDrift, now time.Time) (due []*unstructured.Unstructured, wait time.Duration) {
	for _, object := range objects {
		key := manifest.KeyOf(object.Desired)
		corrections := t[key]
		drifted := object.Verdict.State == diff.Modified || object.Verdict.State == diff.Missing
		if !drifted || !corrects(wanted, object.Desired) {
			if corrections != nil {
				corrections.Rest()
			}
			continue
		}
		if corrections == nil {
			corrections = &Corrections{}
			t[key] = corrections
		}
		if left := corrections.Wait(now); left > 0 {
			wait = Sooner(wait, left)
			continue
		}
		due = append(due, object.Desired)
	}
	return due, wait
}

// Made notes a correction of an object that was due, and what it failed of.
func (t Turns) Made(object *unstructured.Unstructured, now time.Time, err error) {
	t[manifest.KeyOf(object)].Made(now, err)
}

// Err returns why objects could not be corrected.
func (t Turns) Err(objects []*unstructured.Unstructured) error {
	var failures []error
	for _, object := range objects {
		if corrections := t[manifest.KeyOf(object)]; corrections != nil {
			failures = append(failures, corrections.Err())
		}
	}
	return errors.Join(failures...)
}

// corrects says whether drift of an object is corrected: as the deployment says, else if its strategy does.
func corrects(wanted *fleet.CorrectDrift, desired *unstructured.Unstructured) bool {
	if wanted != nil {
		return wanted.Enabled
	}
	return manifest.StrategyOf(desired) == fleet.ApplyServerSide
}
