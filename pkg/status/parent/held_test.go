package parent

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// Clusters that are held back are never counted as ready, whatever they run, and are named with the reason.
func TestHeld(t *testing.T) {
	for name, test := range map[string]struct {
		states  []fleet.BundleState
		held    []Held
		missing int
		want    string
		summary string // ready/out of sync/pending/error of desired
		state   string
	}{
		"nothing":          {states: []fleet.BundleState{fleet.Ready}, summary: "1/0/0/0 of 1"},
		"runs the old one": {states: []fleet.BundleState{fleet.Ready, fleet.Ready}, held: []Held{{"ws/c1", fleet.Ready, "render bundle b: no", false}}, want: "OutOfSync(1) [Cluster ws/c1: held back: render bundle b: no]", summary: "1/1/0/0 of 2", state: "OutOfSync"},
		"runs nothing":     {states: []fleet.BundleState{fleet.Ready}, held: []Held{{"ws/c1", "", "no", false}}, missing: 2, want: "Pending(2) [Cluster ws/c1: held back: no]", summary: "1/0/2/0 of 3", state: "Pending"},
		"not ready before": {states: []fleet.BundleState{fleet.NotReady}, held: []Held{{"ws/c0", fleet.NotReady, "no", false}}, want: "OutOfSync(1) [Cluster ws/c0: held back: no]", summary: "0/1/0/0 of 1", state: "OutOfSync"},
		"failed before":    {states: []fleet.BundleState{fleet.ErrApplied}, held: []Held{{"ws/c0", fleet.ErrApplied, "no", false}}, want: "ErrApplied(1) [Cluster ws/c0: held back: no]", summary: "0/0/0/1 of 1", state: "ErrApplied"},
		"before others":    {states: []fleet.BundleState{fleet.WaitApplied, fleet.WaitApplied}, held: []Held{{"ws/c1", fleet.WaitApplied, "no", false}}, want: "WaitApplied(2) [Cluster ws/c1: held back: no]", summary: "0/0/0/0 of 2", state: "WaitApplied"},
		"only waits":       {states: []fleet.BundleState{fleet.Ready}, held: []Held{{"ws/c1", "", "waiting for bundle a", true}}, missing: 1, want: "Pending(1) [Cluster ws/c1: held back: waiting for bundle a]", summary: "1/0/1/0 of 2", state: "Pending"},
		"counted anew":     {states: []fleet.BundleState{fleet.ErrApplied}, held: []Held{{"ws/c0", fleet.Ready, "no", false}}, want: "ErrApplied(1)", summary: "0/0/0/1 of 1", state: "ErrApplied"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Bundle(BundleInput{
				Generation: 1, Rollup: indexOf(test.states...).Bundle("ws", "b"), Held: test.held, Rollout: &Rollout{Missing: test.missing},
			}, noon)
			ready := status.Find(got.Conditions, fleet.ConditionReady)
			if ready.Message != test.want {
				t.Errorf("Ready says %q, want %q", ready.Message, test.want)
			}
			if (ready.Reason == fleet.ReasonError) != (len(test.held) > 0 && !test.held[0].Waits) {
				t.Errorf("reason %q", ready.Reason)
			}
			s := got.Summary
			if counts := fmt.Sprintf("%d/%d/%d/%d of %d", s.Ready, s.OutOfSync, s.Pending, s.ErrApplied, s.DesiredReady); counts != test.summary {
				t.Errorf("counts %s, want %s", counts, test.summary)
			}
			if got.Display.State != test.state {
				t.Errorf("state %q, want %q", got.Display.State, test.state)
			}
		})
	}
}

// The list of names stays short, and the worst are on it.
func TestHeldIsBounded(t *testing.T) {
	var held []Held
	for i := range 500 {
		held = append(held, Held{Name: fmt.Sprintf("ws/h%03d", i), Message: "no"})
	}
	got := Bundle(BundleInput{Generation: 1, Rollup: indexOf(fleet.ErrApplied).Bundle("ws", "b"), Held: held, Rollout: &Rollout{Missing: 500}}, noon)
	list := got.Summary.NonReadyResources
	if len(list) != tally.MaxNonReady || list[0].State != fleet.ErrApplied || list[1].Name != "ws/h000" {
		t.Errorf("%d names: %+v", len(list), list)
	}
}

// A source shows what its bundle's clusters are kept from.
func TestHeldReachesTheSource(t *testing.T) {
	bundle := &fleet.Bundle{Status: Bundle(BundleInput{
		Generation: 1, Rollup: indexOf(fleet.Ready).Bundle("ws", "b"), Held: []Held{{"ws/c0", fleet.Ready, "render bundle b: no", false}},
	}, noon)}
	bundle.Name = "b"
	in := sourceOf(fleet.Ready)
	in.Bundles = []BundleReadiness{ReadinessOf(bundle)}
	got := gitRepo(in)
	ready := status.Find(got.Conditions, fleet.ConditionReady)
	want := "Bundle b: OutOfSync(1) [Cluster ws/c0: held back: render bundle b: no]"
	if ready.Status != corev1.ConditionFalse || ready.Message != want || !got.Display.Error {
		t.Errorf("Ready is %+v, display %+v; want %q", ready, got.Display, want)
	}
	if seen := summarize(t, "GitRepo", got); !seen.Error {
		t.Errorf("the dashboard shows %+v", seen)
	}
}

// A cluster's numbers count what it is kept from, also where it has no deployment of it.
func TestHoldOnCluster(t *testing.T) {
	rollup := tally.Rollup{Summary: fleet.BundleSummary{DesiredReady: 3, Ready: 2, NotReady: 1,
		NonReadyResources: []fleet.NonReadyResource{{Name: "web", State: fleet.NotReady, Message: "0 of 1"}}}}
	Hold(&rollup, nil)
	if rollup.Summary.Ready != 2 || rollup.Summary.DesiredReady != 3 {
		t.Errorf("nothing is held and it counts %+v", rollup.Summary)
	}
	Hold(&rollup, []Held{{"app", fleet.Ready, "render bundle app: no", false}, {"new", "", "render bundle new: no", false}})
	summary := rollup.Summary
	if summary.DesiredReady != 4 || summary.Ready != 1 || summary.OutOfSync != 1 || summary.Pending != 1 || summary.NotReady != 1 {
		t.Errorf("counts %+v", summary)
	}
	var got []string
	for _, resource := range summary.NonReadyResources {
		got = append(got, fmt.Sprint(resource.Name, " ", resource.State, " ", resource.Message))
	}
	want := "[app OutOfSync held back: render bundle app: no new Pending held back: render bundle new: no web NotReady 0 of 1]"
	if fmt.Sprint(got) != want {
		t.Errorf("names %v, want %s", got, want)
	}
}
