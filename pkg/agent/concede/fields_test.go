package concede

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func withData(data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "n"}, "data": data,
	}}
}

func TestFields(t *testing.T) {
	present := []fleet.IgnoreFields{{Condition: fleet.OnMemberPresent, JSONPointers: []string{"/data/a"}}}
	change := []fleet.IgnoreFields{{Condition: fleet.OnMemberChange, JSONPaths: []string{".data.a"}}}
	for name, test := range map[string]struct {
		left      []fleet.IgnoreFields
		live      map[string]any
		previous  map[string]any
		unchanged bool
		want      map[string]any
	}{
		"nothing is left":                  {nil, map[string]any{"a": "theirs"}, nil, false, map[string]any{"a": "git", "b": "git"}},
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
			var found, before *unstructured.Unstructured
			if test.live != nil {
				found = withData(test.live)
			}
			if test.previous != nil {
				before = withData(test.previous)
			}
			got, err := Fields(test.left, withData(map[string]any{"a": "git", "b": "git"}), found, before, test.unchanged)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Object["data"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFieldsRefuses(t *testing.T) {
	for name, left := range map[string]fleet.IgnoreFields{
		"path":    {Condition: fleet.OnMemberPresent, JSONPaths: []string{"a"}},
		"pointer": {Condition: fleet.OnMemberPresent, JSONPointers: []string{"a"}},
	} {
		_, err := Fields([]fleet.IgnoreFields{left}, withData(nil), withData(nil), nil, false)
		if fault.ClassOf(err) != fault.Stalled || fault.ReasonOf(err) != ReasonInvalidFields {
			t.Errorf("a %s that cannot be read: %v", name, err)
		}
	}
}
