package diff

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestException(t *testing.T) {
	for name, test := range map[string]struct {
		live, restored string
		want           []string
	}{
		"a field":          {head + "data: {a: b, same: x}", head + "data: {a: c, same: x}", []string{"/data/a"}},
		"odd names":        {head + "data: {a/b~c: b, d: e}", head + "data: {a/b~c: c, d: e}", []string{"/data/a~1b~0c"}},
		"a field too much": {head + "data: {a: b, c: d}", head + "data: {a: b}", []string{"/data/c"}},
		"a map too much":   {head + "data: {a: b}", head, []string{"/data"}},
		"in a list": {
			head + "spec: {containers: [{name: a, image: x}, {name: b, image: y}]}", head + "spec: {containers: [{name: a, image: z}, {name: b, image: y}]}",
			[]string{"/spec/containers/0/image"},
		},
		"a longer list": {
			head + "spec: {containers: [{name: a}, {name: b}], c: d}", head + "spec: {containers: [{name: a}], c: d}", []string{"/spec/containers"},
		},
		"a list of words": {head + "spec: {args: [a, b, c], c: d}", head + "spec: {args: [x, b, y], c: d}", []string{"/spec/args"}},
		"a list of lists": {head + "spec: {args: [[a], [b]], c: d}", head + "spec: {args: [[c], [b]], c: d}", []string{"/spec/args"}},
		"labels": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: ns, labels: {a: b}}", head, []string{"/metadata/labels"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			live, restored := object(t, test.live), object(t, test.restored)
			got := Compare(live, restored, Rules{}).Exception
			want := &fleet.ComparePatch{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "x"}
			for _, path := range test.want {
				want.Operations = append(want.Operations, fleet.Operation{Op: "remove", Path: path})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			expectExcepted(t, live, restored, got)
		})
	}
}

// However much differs, the entry is short and excepts all of it.
func TestExceptionIsBounded(t *testing.T) {
	many := func(value string) *unstructured.Unstructured {
		var text strings.Builder
		text.WriteString(head + "data:\n")
		for i := range 40 {
			fmt.Fprintf(&text, "  key-%d: %s\n", i, value)
		}
		text.WriteString("spec:\n  containers:\n")
		for i := range 20 {
			fmt.Fprintf(&text, "  - {name: c%d, image: %s}\n", i, value)
		}
		return object(t, text.String())
	}
	live, restored := many("old"), many("new")
	got := Compare(live, restored, Rules{}).Exception
	if len(got.Operations) == 0 || len(got.Operations) > maxOperations {
		t.Errorf("%d operations: %+v", len(got.Operations), got.Operations)
	}
	expectExcepted(t, live, restored, got)
}

func TestAbsence(t *testing.T) {
	gone := object(t, head)
	entry := Verdict{State: Missing}.Offer(gone)
	if entry == nil {
		t.Fatal("nothing is offered")
	}
	rules, err := NewRules(&fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{*entry}})
	if err != nil || !rules.Hides(gone) {
		t.Errorf("the entry does not hide it: %v", err)
	}
}

func expectExcepted(t *testing.T, live, restored *unstructured.Unstructured, entry *fleet.ComparePatch) {
	t.Helper()
	rules, err := NewRules(&fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{*entry}})
	if err != nil {
		t.Fatal(err)
	}
	if verdict := Compare(live, restored, rules); verdict.State != InSync {
		t.Errorf("with the entry it is still %s: %s", verdict.State, verdict.Patch)
	}
}

// Whatever differs, the entry that is offered excepts it.
func FuzzException(f *testing.F) {
	f.Add(`{"data":{"a":"b"}}`, `{"data":{"a":"c"}}`)
	f.Add(`{"spec":{"c":[{"n":1},{"n":2}]}}`, `{"spec":{"c":[{"n":3},{"n":2,"m":null}]}}`)
	f.Add(`{"spec":[[1],[2]]}`, `{"spec":[[1],[3]]}`)
	f.Fuzz(func(t *testing.T, one, other string) {
		live, restored := &unstructured.Unstructured{}, &unstructured.Unstructured{}
		const prefix = `{"apiVersion":"v1","kind":"A","metadata":{"name":"x"},"at":`
		if live.UnmarshalJSON([]byte(prefix+one+"}")) != nil || restored.UnmarshalJSON([]byte(prefix+other+"}")) != nil {
			return
		}
		if live.GetName() != "x" || restored.GetName() != "x" || live.GetKind() != "A" || restored.GetKind() != "A" {
			return
		}
		if verdict := Compare(live, restored, Rules{}); verdict.State == Modified {
			expectExcepted(t, live, restored, verdict.Exception)
		}
	})
}
