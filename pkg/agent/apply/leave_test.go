package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

func TestConceding(t *testing.T) {
	present := `{"ignoreFields":[{"condition":"OnMemberPresent","jsonPointers":["/data/a"]}]}`
	change := `{"ignoreFields":[{"condition":"OnMemberChange","jsonPaths":[".data.a"]}]}`
	for name, test := range map[string]struct {
		how       string
		live      map[string]any
		previous  map[string]any
		unchanged bool
		want      map[string]any
	}{
		"nothing is left":                  {"", map[string]any{"a": "theirs"}, nil, false, map[string]any{"a": "git", "b": "git"}},
		"present, not there":               {present, nil, nil, false, map[string]any{"a": "git", "b": "git"}},
		"present":                          {present, map[string]any{"a": "theirs", "b": "theirs"}, nil, false, map[string]any{"a": "theirs", "b": "git"}},
		"present, changed in git":          {present, map[string]any{"a": "theirs"}, map[string]any{"a": "old"}, false, map[string]any{"a": "theirs", "b": "git"}},
		"change, unchanged in git":         {change, map[string]any{"a": "theirs"}, map[string]any{"a": "git"}, false, map[string]any{"a": "theirs", "b": "git"}},
		"change, changed in git":           {change, map[string]any{"a": "theirs"}, map[string]any{"a": "old"}, false, map[string]any{"a": "git", "b": "git"}},
		"change, nothing applied before":   {change, map[string]any{"a": "theirs"}, nil, false, map[string]any{"a": "git", "b": "git"}},
		"change, restored":                 {change, map[string]any{"a": "theirs"}, nil, true, map[string]any{"a": "theirs", "b": "git"}},
		"change, taken away on the member": {change, map[string]any{}, nil, true, map[string]any{"b": "git"}},
	} {
		t.Run(name, func(t *testing.T) {
			how, err := planFor(withData(test.how, map[string]any{"a": "git", "b": "git"}))
			if err != nil {
				t.Fatal(err)
			}
			if _, left := how.desired.GetAnnotations()[fleet.ApplyAnnotation]; left {
				t.Error("the note would be sent")
			}
			var found, before *unstructured.Unstructured
			if test.live != nil {
				found = withData("", test.live)
			}
			if test.previous != nil {
				before = withData(test.how, test.previous)
			}
			got, err := how.conceding(found, before, test.unchanged)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Object["data"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	if _, err := planFor(withData("{", nil)); fault.ReasonOf(err) != ReasonInvalidFields {
		t.Errorf("a note that cannot be read: %v", err)
	}
	how, err := planFor(withData(`{"ignoreFields":[{"condition":"OnMemberPresent","jsonPaths":["a"]}]}`, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := how.conceding(withData("", nil), nil, false); fault.ClassOf(err) != fault.Stalled {
		t.Errorf("a path that cannot be read: %v", err)
	}
}

// Who only creates leaves nobody's object alone, and respects an owner's.
func TestCheckOfStrategies(t *testing.T) {
	claim := Claim{SetID: "default-a", SetHash: "aaaa", Release: "a", ReleaseNamespace: "n"}
	createOnly, err := planFor(withData(`{"strategy":"CreateOnly"}`, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := createOnly.check(claim, live(nil, nil)); err != nil {
		t.Errorf("nobody's object: %v", err)
	}
	if err := createOnly.check(claim, live(map[string]string{fleet.SetHashLabel: "bbbb"}, nil)); fault.ReasonOf(err) != ReasonOwnedByOther {
		t.Errorf("another's object: %v", err)
	}
	usual, err := planFor(withData("", nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := usual.check(claim, live(nil, nil)); fault.ReasonOf(err) != ReasonNotOwned {
		t.Errorf("nobody's object, as usual: %v", err)
	}
}
