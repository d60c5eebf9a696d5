package tally

import (
	"encoding/json"
	"strconv"
	"testing"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/statustest"
)

func TestBound(t *testing.T) {
	bd := statustest.Hostile("app", "evil")
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
