package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// deployment makes a deployment in a state.
func deployment(state fleet.BundleState) *fleet.BundleDeployment {
	bd := &fleet.BundleDeployment{}
	bd.Spec.DeploymentID, bd.Spec.StagedDeploymentID = "s-1:a", "s-1:a"
	bd.Status = fleet.BundleDeploymentStatus{DeploymentPartStatus: fleet.DeploymentPartStatus{
		AppliedDeploymentID: "s-1:a", Ready: true, NonModified: true,
	}}
	switch state {
	case fleet.ErrApplied:
		bd.Status.AppliedDeploymentID = "s-0:a"
		bd.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: "chart of b does not render"}}
	case fleet.WaitApplied:
		bd.Status.AppliedDeploymentID = "s-0:a"
	case fleet.NotReady:
		bd.Status.Ready = false
	case fleet.OutOfSync:
		bd.Spec.StagedDeploymentID = "s-2:a"
	case fleet.Modified:
		bd.Status.NonModified = false
	}
	return bd
}

var allStates = []fleet.BundleState{fleet.Ready, fleet.NotReady, fleet.OutOfSync, fleet.Modified, fleet.WaitApplied, fleet.ErrApplied}

func TestOf(t *testing.T) {
	for _, state := range allStates {
		if got := Of(deployment(state)); got != state {
			t.Errorf("got %s, want %s", got, state)
		}
	}
	staged := deployment(fleet.Ready)
	staged.Spec.DeploymentID, staged.Status.AppliedDeploymentID, staged.Status.Ready = "", "", false
	if got := Of(staged); got != fleet.OutOfSync {
		t.Errorf("staged only: %s", got)
	}
	both := deployment(fleet.Modified)
	both.Status.Ready = false
	if got := Of(both); got != fleet.NotReady {
		t.Errorf("modified and not ready: %s", got)
	}
	waiting := deployment(fleet.ErrApplied)
	waiting.Status.Conditions[0].Status = corev1.ConditionUnknown
	if got := Of(waiting); got != fleet.WaitApplied {
		t.Errorf("waiting for something: %s", got)
	}
}

func TestDisplay(t *testing.T) {
	bd := deployment(fleet.ErrApplied)
	bd.Status.Conditions[0].Reason = fleet.ReasonError
	bd.Status.Conditions = append(bd.Status.Conditions, fleet.Condition{Type: fleet.ConditionMonitored, Status: corev1.ConditionTrue})
	want := fleet.BundleDeploymentDisplay{Deployed: "Error: chart of b does not render", Monitored: "True", State: "ErrApplied"}
	if diff := cmp.Diff(want, Display(bd)); diff != "" {
		t.Error(diff)
	}
}

// A failure of an earlier version is none of the present one.
func TestStateRightAfterAChange(t *testing.T) {
	for acked, want := range map[string]fleet.BundleState{"": fleet.ErrApplied, "new": fleet.ErrApplied, "old": fleet.WaitApplied} {
		bd := &fleet.BundleDeployment{Spec: fleet.BundleDeploymentSpec{DeploymentPartSpec: fleet.DeploymentPartSpec{DeploymentID: "new", StagedDeploymentID: "new"}}}
		bd.Status.AckedDeploymentID = acked
		bd.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: "no way"}}
		if got := Of(bd); got != want {
			t.Errorf("acknowledged %q: %s, want %s", acked, got, want)
		}
		if got := MessageOf(bd); (got == "no way") != (want == fleet.ErrApplied) {
			t.Errorf("acknowledged %q: message %q", acked, got)
		}
	}
}

func TestMessage(t *testing.T) {
	s := fleet.BundleSummary{Ready: 5, NotReady: 2, ErrApplied: 1, Modified: 3, Pending: 4, DesiredReady: 15, NonReadyResources: []fleet.NonReadyResource{
		{Name: "ws/c1", State: fleet.ErrApplied, Message: "no chart"},
		{Name: "ws/c2", State: fleet.Modified, ModifiedStatus: []fleet.ModifiedStatus{
			{Kind: "Service", APIVersion: "v1", Namespace: "n", Name: "a", Create: true},
			{Kind: "Service", APIVersion: "v1", Namespace: "n", Name: "b", Create: true, Exist: true},
			{Kind: "Deployment", APIVersion: "apps/v1", Namespace: "n", Name: "c", Delete: true},
			{Kind: "Namespace", APIVersion: "v1", Name: "d", Patch: "{}"},
			{Kind: "Namespace", APIVersion: "v1", Name: "e"},
		}},
		{Name: "ws/c3", State: fleet.NotReady, NonReadyStatus: []fleet.NonReadyStatus{
			{Kind: "Pod", APIVersion: "v1", Namespace: "n", Name: "p", Summary: fleet.ObjectSummary{State: "failed", Error: true, Transitioning: true, Message: []string{"x", "y"}}},
			{Kind: "Pod", APIVersion: "v1", Namespace: "n", Name: "q", Summary: fleet.ObjectSummary{State: "unavailable"}},
		}},
	}}
	want := "ErrApplied(1) [Cluster ws/c1: no chart]; Modified(3) [Cluster ws/c2]; NotReady(2) [Cluster ws/c3]; Pending(4); " +
		"deployment.apps n/c extra; namespace d modified {}; pod n/p [progressing,error] x, y; pod n/q unavailable; service n/a missing; service n/b is not owned by us"
	if got := Message(&s, "Cluster"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Message(&fleet.BundleSummary{Ready: 3, DesiredReady: 3}, "Cluster"); got != "" {
		t.Errorf("all ready: %q", got)
	}
}
