package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// All reports in a full merged object stay below 88 KiB, however much is wrong with all of them at once; what is
// counted is right; and the same facts cause no second write.
func TestReportsInAMergedObjectStaySmall(t *testing.T) {
	const parts = merge.MaxParts
	object := &fleet.BundleDeployment{}
	object.Name, object.Labels = "merged", map[string]string{fleet.MergedLabel: "repo"}
	object.Spec.Parts, object.Status.Parts = map[string]fleet.DeploymentPart{}, map[string]fleet.DeploymentPartStatus{}
	for i := range parts {
		one := deployment("old")
		one.Name = fmt.Sprintf("app-%02d", i)
		object.Spec.Parts[one.Name] = merge.PartOf(one)
	}
	facts := Facts{
		Known: true, Release: "apps/app:1",
		Failure: fault.New(fault.Stalled, "Refused", "%s", strings.Repeat("the server refuses it for this reason ", 100)),
	}
	for i := range 50 {
		one := sight(fmt.Sprintf("%s-%d", strings.Repeat("x", 100), i), diff.Modified, false)
		one.Summary = fleet.ObjectSummary{State: "Failed", Error: true, Message: []string{strings.Repeat("it does not run ", 100)}}
		facts.Objects = append(facts.Objects, one)
	}
	for _, part := range merge.Explode(object) {
		made := Status(part, facts, time.Unix(0, 0))
		if made.ResourceCounts.DesiredReady != 50 || made.ResourceCounts.NotReady != 50 || !made.IncompleteState {
			t.Errorf("%s: counts %+v, cut %t", part.Name, made.ResourceCounts, made.IncompleteState)
		}
		part.Status = *made
		if status.Of(part) != fleet.ErrApplied || !strings.Contains(status.MessageOf(part), "the server refuses it") {
			t.Errorf("%s: %s, %q", part.Name, status.Of(part), status.MessageOf(part))
		}
		if patch, err := Patch(made, Status(part, facts, time.Unix(60, 0))); patch != nil || err != nil {
			t.Fatalf("the same facts make another status: %s, %v", patch, err)
		}
		object.Status.Parts[part.Name] = made.DeploymentPartStatus
	}
	told := Merged(merge.Explode(object), nil, time.Unix(0, 0))
	if told.Display.Deployed != fmt.Sprintf("0/%d", parts) || told.Display.State != string(fleet.ErrApplied) {
		t.Errorf("shown is %+v", told.Display)
	}
	encoded, err := json.Marshal(object.Status)
	if err != nil {
		t.Fatal(err)
	}
	if len(encoded) > 88<<10 {
		t.Errorf("%d reports take %d bytes", parts, len(encoded))
	}
}
