package tally

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
	corev1 "k8s.io/api/core/v1"
)

// hostile is a report that is as large and as wrong as can be.
func hostile(bundle, cluster string) *fleet.BundleDeployment {
	long := strings.Repeat("<", 160_000) // six bytes each in JSON
	bd := &fleet.BundleDeployment{}
	bd.Labels = map[string]string{
		fleet.BundleNamespaceLabel: "ws", fleet.BundleLabel: bundle,
		fleet.ClusterNamespaceLabel: "ws", fleet.ClusterLabel: cluster, fleet.RepoLabel: "repo",
	}
	bd.Spec.DeploymentID, bd.Spec.StagedDeploymentID = "s-1:o", "s-1:o"
	s := &bd.Status
	s.AppliedDeploymentID, s.Release, s.Display.State, s.Display.Deployed = long, long, long, long
	s.ResourceCounts = fleet.ResourceCounts{Ready: -1 << 60, DesiredReady: 1 << 62, NotReady: -5}
	for _, kind := range []string{fleet.ConditionDeployed, fleet.ConditionInstalled, fleet.ConditionMonitored, long} {
		s.Conditions = append(s.Conditions, fleet.Condition{Type: kind, Status: corev1.ConditionFalse, Reason: fleet.ReasonError, Message: long})
	}
	for range 100 {
		s.ModifiedStatus = append(s.ModifiedStatus, fleet.ModifiedStatus{Kind: long, APIVersion: long, Namespace: long, Name: long, Patch: long})
		s.NonReadyStatus = append(s.NonReadyStatus, fleet.NonReadyStatus{UID: long, Kind: long, APIVersion: long, Namespace: long, Name: long,
			Summary: fleet.ObjectSummary{State: long, Error: true, Message: []string{long, long}}})
		s.Resources = append(s.Resources, fleet.BundleDeploymentResource{Kind: long, APIVersion: long, Namespace: long, Name: long})
	}
	return bd
}

func TestBound(t *testing.T) {
	bd := hostile("app", "evil")
	Bound(bd)
	size := func() int {
		text, err := json.Marshal(bd.Status)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	once := size()
	if once > 1<<20 {
		t.Errorf("%d bytes are left", once)
	}
	if c := bd.Status.ResourceCounts; c.Ready != 0 || c.DesiredReady != maxCount || c.NotReady != 0 {
		t.Errorf("counts %+v", c)
	}
	if status.Of(bd) != fleet.ErrApplied || !bd.Status.IncompleteState {
		t.Errorf("state %s, incomplete %v", status.Of(bd), bd.Status.IncompleteState)
	}
	Bound(bd)
	if again := size(); again != once {
		t.Errorf("bounding again makes %d bytes of %d", again, once)
	}
	for i := range 100_000 {
		bd.Status.Resources = append(bd.Status.Resources, fleet.BundleDeploymentResource{Name: strconv.Itoa(i)})
	}
	Bound(bd)
	if kept := len(bd.Status.Resources); kept > 10_000 || cap(bd.Status.Resources) > 2*kept {
		t.Errorf("%d objects are kept in room for %d", kept, cap(bd.Status.Resources))
	}
}

func TestBoundLeavesHonestReports(t *testing.T) {
	bd := &fleet.BundleDeployment{}
	for i := range 2000 {
		bd.Status.Resources = append(bd.Status.Resources, fleet.BundleDeploymentResource{
			Kind: "Deployment", APIVersion: "apps/v1", Namespace: "namespace-of-an-application", Name: "application-with-a-long-name-" + strconv.Itoa(i),
		})
	}
	bd.Status.ResourceCounts = fleet.ResourceCounts{Ready: 2000, DesiredReady: 2000}
	bd.Status.NonReadyStatus = []fleet.NonReadyStatus{{Kind: "Pod", Name: "a", Summary: fleet.ObjectSummary{Message: []string{"größer"}}}}
	before := bd.DeepCopy()
	Bound(bd)
	if was, is := mustJSON(t, before), mustJSON(t, bd); was != is {
		t.Errorf("%d bytes became %d", len(was), len(is))
	}
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
