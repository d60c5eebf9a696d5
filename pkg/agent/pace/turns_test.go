package pace

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func sight(state diff.State, strategy fleet.ApplyStrategy) report.Sight {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("v1")
	object.SetKind("ConfigMap")
	object.SetName(string(state))
	if strategy != "" {
		object.SetAnnotations(map[string]string{fleet.ApplyAnnotation: `{"strategy":"` + string(strategy) + `"}`})
	}
	return report.Sight{Desired: object, Verdict: diff.Verdict{State: state}}
}

// What differs is due where the deployment says so, else where its strategy does.
func TestDue(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	on, off := &fleet.CorrectDrift{Enabled: true}, &fleet.CorrectDrift{}
	for name, test := range map[string]struct {
		sight  report.Sight
		wanted *fleet.CorrectDrift
		want   int
	}{
		"modified":                      {sight(diff.Modified, ""), on, 1},
		"missing":                       {sight(diff.Missing, ""), on, 1},
		"in sync":                       {sight(diff.InSync, ""), on, 0},
		"unknown":                       {sight(diff.Unknown, ""), on, 0},
		"switched off":                  {sight(diff.Modified, fleet.ApplyServerSide), off, 0},
		"nothing said":                  {sight(diff.Modified, ""), nil, 0},
		"nothing said, by its strategy": {sight(diff.Modified, fleet.ApplyServerSide), nil, 1},
	} {
		due, wait := Turns{}.Due([]report.Sight{test.sight}, test.wanted, now)
		if len(due) != test.want || wait != 0 {
			t.Errorf("%s: %d due, wait %s", name, len(due), wait)
		}
	}
}

// Each object has its own turns, and the next one tells how long to wait; a failure is told until it passes.
func TestTurns(t *testing.T) {
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	on := &fleet.CorrectDrift{Enabled: true}
	turns := Turns{}
	both := []report.Sight{sight(diff.Modified, ""), sight(diff.Missing, "")}
	objects := []*unstructured.Unstructured{both[0].Desired, both[1].Desired}
	due, _ := turns.Due(both[:1], on, now)
	refused := errors.New("refused")
	turns.Made(due[0], now, refused)
	if err := turns.Err(objects); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	due, wait := turns.Due(both, on, now.Add(time.Second))
	if len(due) != 1 || manifest.KeyOf(due[0]) != manifest.KeyOf(objects[1]) || wait != time.Second {
		t.Errorf("%d due, wait %s", len(due), wait)
	}
	both[0].Verdict.State = diff.InSync
	if turns.Due(both, on, now.Add(time.Second)); turns.Err(objects) != nil {
		t.Errorf("error %v of an object that is as it should be", turns.Err(objects))
	}
}
