package report

import (
	"errors"
	"testing"

	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Applied, available, under way and broken are four different facts.
func TestFourFacts(t *testing.T) {
	unready := func(summary fleet.ObjectSummary) []Sight {
		object := sight("a", diff.InSync, false)
		object.Summary = summary
		return []Sight{object}
	}
	for name, test := range map[string]struct {
		before string
		facts  Facts
		want   string // Applied, Available, Progressing, Degraded
	}{
		"ready":            {"", Facts{Known: true, Release: "r", Applied: true, Objects: []Sight{sight("a", diff.InSync, true)}}, "True True False False"},
		"starting":         {"", Facts{Known: true, Release: "r", Applied: true, Objects: unready(fleet.ObjectSummary{Transitioning: true})}, "True False True False"},
		"broken":           {"", Facts{Known: true, Release: "r", Applied: true, Objects: unready(fleet.ObjectSummary{Error: true})}, "True False False True"},
		"waiting":          {"", Facts{Known: true, Failure: fault.New(fault.Waiting, "W", "for b")}, "Unknown Unknown True False"},
		"failed, old runs": {"old", Facts{Known: true, Release: "r", Failure: errors.New("no"), Objects: []Sight{sight("a", diff.InSync, true)}}, "False True False True"},
		"not known":        {"", Facts{Known: true, Release: "r", Applied: true, Objects: []Sight{sight("a", diff.Unknown, false)}}, "True Unknown False False"},
		"cannot correct":   {"", Facts{Known: true, Release: "r", Applied: true, Correction: errors.New("no"), Objects: []Sight{sight("a", diff.Modified, true)}}, "True True False True"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(test.before)
			d.Status = *Status(d, test.facts, now)
			got := ""
			for _, kind := range []string{fleet.ConditionApplied, fleet.ConditionAvailable, fleet.ConditionProgressing, fleet.ConditionDegraded} {
				got += " " + string(status.Find(d.Status.Conditions, kind).Status)
			}
			if got[1:] != test.want {
				t.Errorf("got %s, want %s", got[1:], test.want)
			}
		})
	}
}
