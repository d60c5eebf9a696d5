package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/concede"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func withData(how string, data map[string]any) *unstructured.Unstructured {
	o := live(nil, nil)
	if how != "" {
		o.SetAnnotations(map[string]string{fleet.ApplyAnnotation: how})
	}
	o.Object["data"] = data
	return o
}

// The note in the record of a release says how an object is written, and is not sent.
func TestPlanFor(t *testing.T) {
	how, err := planFor(withData(`{"force":false,"ignoreFields":[{"condition":"OnMemberPresent","jsonPointers":["/data/a"]}]}`, map[string]any{"a": "git"}))
	if err != nil {
		t.Fatal(err)
	}
	if _, left := how.desired.GetAnnotations()[fleet.ApplyAnnotation]; left {
		t.Error("the note would be sent")
	}
	if how.forces() || how.isPlain() || len(how.IgnoreFields) != 1 {
		t.Errorf("the note is not heeded: %+v", how.ApplyOptions)
	}
	usual, err := planFor(withData("", nil))
	if err != nil {
		t.Fatal(err)
	}
	if !usual.forces() || !usual.isPlain() {
		t.Errorf("without a note: %+v", usual.ApplyOptions)
	}
	if _, err := planFor(withData("{", nil)); fault.ReasonOf(err) != concede.ReasonInvalidFields {
		t.Errorf("a note that cannot be read: %v", err)
	}
}

// Who only creates leaves nobody's object alone, and respects an owner's.
func TestCheckOfStrategies(t *testing.T) {
	claim := ownership.Claim{SetID: "default-a", SetHash: "aaaa", Release: "a", ReleaseNamespace: "n"}
	createOnly, err := planFor(withData(`{"strategy":"CreateOnly"}`, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := createOnly.check(claim, live(nil, nil)); err != nil {
		t.Errorf("nobody's object: %v", err)
	}
	if err := createOnly.check(claim, live(map[string]string{fleet.SetHashLabel: "bbbb"}, nil)); fault.ReasonOf(err) != ownership.ReasonOwnedByOther {
		t.Errorf("another's object: %v", err)
	}
	usual, err := planFor(withData("", nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := usual.check(claim, live(nil, nil)); fault.ReasonOf(err) != ownership.ReasonNotOwned {
		t.Errorf("nobody's object, as usual: %v", err)
	}
}
