package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func object(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion("v1")
	o.SetKind("ConfigMap")
	o.SetNamespace("n")
	o.SetName(name)
	o.SetUID(types.UID("uid-" + name))
	return o
}

func sight(name string, state diff.State, ready bool) Sight {
	s := Sight{Desired: object(name), Verdict: diff.Verdict{State: state, Reason: "because", Patch: "{}"}, Ready: ready}
	if state != diff.Missing && state != diff.Unknown {
		s.Live = object(name)
	}
	return s
}

func deployment(applied string) *fleet.BundleDeployment {
	d := &fleet.BundleDeployment{Spec: fleet.BundleDeploymentSpec{DeploymentPartSpec: fleet.DeploymentPartSpec{DeploymentID: "new", StagedDeploymentID: "new"}}}
	d.Status.AppliedDeploymentID = applied
	return d
}

func TestStatus(t *testing.T) {
	fine := Facts{Known: true, Release: "n/r:1", Applied: true, Objects: []Sight{sight("a", diff.InSync, true)}}
	with := func(change func(*Facts)) Facts {
		facts := fine
		change(&facts)
		return facts
	}
	for name, test := range map[string]struct {
		before      string
		facts       Facts
		wantState   fleet.BundleState
		wantApplied string
		wantMessage string
	}{
		"ready":            {"", fine, fleet.Ready, "new", ""},
		"nothing yet":      {"", Facts{Known: true}, fleet.WaitApplied, "", "not deployed yet"},
		"not ready":        {"", with(func(f *Facts) { f.Objects = []Sight{sight("a", diff.InSync, false)} }), fleet.NotReady, "new", "configmap n/a"},
		"modified":         {"", with(func(f *Facts) { f.Objects = []Sight{sight("a", diff.Modified, true)} }), fleet.Modified, "new", "configmap n/a modified"},
		"missing":          {"", with(func(f *Facts) { f.Objects = []Sight{sight("a", diff.Missing, false)} }), fleet.NotReady, "new", "configmap n/a missing"},
		"unknown":          {"", with(func(f *Facts) { f.Objects = []Sight{sight("a", diff.Unknown, false)} }), fleet.NotReady, "new", "because"},
		"somebody else's":  {"", with(func(f *Facts) { f.Objects = []Sight{sight("a", diff.Foreign, true)} }), fleet.Modified, "new", "not owned by us"},
		"failed upgrade":   {"old", with(func(f *Facts) { f.Applied, f.Failure = false, errors.New("no way") }), fleet.ErrApplied, "old", "no way"},
		"waiting":          {"old", with(func(f *Facts) { f.Applied, f.Failure = false, fault.New(fault.Waiting, "W", "for b") }), fleet.WaitApplied, "old", "for b"},
		"failed install":   {"", Facts{Known: true, Failure: errors.New("no way")}, fleet.ErrApplied, "", "no way"},
		"cannot see":       {"new", Facts{Unseen: errors.New("no eyes")}, fleet.NotReady, "new", "no eyes"},
		"uninstalled":      {"new", Facts{Known: true}, fleet.WaitApplied, "", "not deployed yet"},
		"fails to correct": {"", with(func(f *Facts) { f.Correction = errors.New("it fights"); f.Objects[0].Ready = true }), fleet.Ready, "new", "it fights"},
	} {
		t.Run(name, func(t *testing.T) {
			d := deployment(test.before)
			d.Status = *Status(d, test.facts, now)
			if got := status.Of(d); got != test.wantState || d.Status.Display.State != string(got) {
				t.Errorf("state %s (shown %s), want %s", got, d.Status.Display.State, test.wantState)
			}
			if d.Status.AppliedDeploymentID != test.wantApplied {
				t.Errorf("applied %q, want %q", d.Status.AppliedDeploymentID, test.wantApplied)
			}
			ready := status.Find(d.Status.Conditions, fleet.ConditionReady)
			if !strings.Contains(ready.Message, test.wantMessage) || (test.wantMessage == "") != (ready.Message == "") {
				t.Errorf("message %q, want %q", ready.Message, test.wantMessage)
			}
			again := Status(d, test.facts, now.Add(time.Hour))
			if patch, err := Patch(&d.Status, again); patch != nil || err != nil {
				t.Errorf("the same facts change the status: %s, %v", patch, err)
			}
		})
	}
}

func TestListsAreBoundedAndSorted(t *testing.T) {
	facts := Facts{Known: true, Release: "n/r:1", Applied: true}
	for i := range 30 {
		facts.Objects = append(facts.Objects, sight(fmt.Sprintf("o%02d", (i*7)%30), diff.Modified, i%2 == 0))
	}
	d := deployment("")
	got := Status(d, facts, now)
	if len(got.ModifiedStatus) != maxListed || len(got.NonReadyStatus) != maxListed || !got.IncompleteState || len(got.Resources) != 30 {
		t.Errorf("%d modified, %d not ready, %d resources, incomplete %v", len(got.ModifiedStatus), len(got.NonReadyStatus), len(got.Resources), got.IncompleteState)
	}
	if got.ModifiedStatus[0].Name != "o00" || got.Resources[29].Name != "o29" {
		t.Error("lists are not sorted")
	}
	d.Status = *got
	facts.Objects = facts.Objects[:1]
	if got := Status(d, facts, now); got.IncompleteState {
		t.Error("incompleteState stays once it was true")
	}
}

func TestCounts(t *testing.T) {
	facts := Facts{Known: true, Release: "n/r:1", Applied: true, Objects: []Sight{
		sight("a", diff.InSync, true), sight("b", diff.Modified, true), sight("c", diff.Modified, false),
		sight("d", diff.Missing, false), sight("e", diff.Unknown, false), sight("f", diff.InSync, false),
	}}
	want := fleet.ResourceCounts{Ready: 1, Modified: 1, NotReady: 2, Missing: 1, Unknown: 1, DesiredReady: 6}
	if diff := cmp.Diff(want, Status(deployment(""), facts, now).ResourceCounts); diff != "" {
		t.Error(diff)
	}
}

// A report says which id it is about, once it is about another one or a failure; what did not change is not
// written for that alone.
func TestAcknowledgement(t *testing.T) {
	fine := Facts{Known: true, Release: "n/r:1", Applied: true, Objects: []Sight{sight("a", diff.InSync, true)}}
	failing := Facts{Known: true, Release: "n/r:1", Failure: errors.New("no way")}
	waiting := Facts{Known: true, Release: "n/r:1", Failure: fault.New(fault.Waiting, "W", "for b")}
	d := deployment("new")
	d.Status = *Status(d, fine, now)
	if d.Status.AckedDeploymentID != "" {
		t.Errorf("acknowledges %q although nothing moved", d.Status.AckedDeploymentID)
	}
	for _, step := range []struct {
		id    string
		facts Facts
		want  string
	}{
		{"second", waiting, ""}, {"second", fine, "second"}, {"third", waiting, "second"},
		{"third", failing, "third"}, {"fourth", failing, "fourth"}, {"fourth", fine, "fourth"},
	} {
		d.Spec.DeploymentID = step.id
		before := d.Status
		d.Status = *Status(d, step.facts, now.Add(time.Hour))
		if d.Status.AckedDeploymentID != step.want {
			t.Errorf("%s: acknowledges %q, want %q", step.id, d.Status.AckedDeploymentID, step.want)
		}
		deployed := status.Find(d.Status.Conditions, fleet.ConditionDeployed)
		if before.AppliedDeploymentID != d.Status.AppliedDeploymentID && deployed.LastUpdateTime != now.Add(time.Hour).Format(time.RFC3339) {
			t.Errorf("%s: applied, but Deployed is of %s", step.id, deployed.LastUpdateTime)
		}
	}
}

// What is cut off and what is told first is a matter of how bad it is, not of chance.
func TestWorstFirst(t *testing.T) {
	var objects []Sight
	for i := range maxListed + 2 {
		object := sight(fmt.Sprintf("a%02d", i), diff.InSync, false)
		object.Summary = fleet.ObjectSummary{State: "in-progress", Transitioning: true}
		objects = append(objects, object)
	}
	still, failed := sight("y", diff.InSync, false), sight("z", diff.InSync, false)
	still.Summary, failed.Summary = fleet.ObjectSummary{State: "unknown"}, fleet.ObjectSummary{State: "failed", Error: true}
	objects = append(objects, still, failed)
	got := Status(deployment("new"), Facts{Known: true, Release: "n/r:1", Applied: true, Objects: objects}, now)
	var names []string
	for _, object := range got.NonReadyStatus {
		names = append(names, object.Name)
	}
	if want := []string{"z", "y", "a00", "a01"}; len(names) != maxListed || !slices.Equal(names[:4], want) {
		t.Errorf("%v, want %v first", names, want)
	}
	if ready := status.Find(got.Conditions, fleet.ConditionReady); !strings.Contains(ready.Message, "z") {
		t.Errorf("message %q", ready.Message)
	}
}
