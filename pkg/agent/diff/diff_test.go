package diff

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = o.UnmarshalJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: ns}\n"

func TestCompare(t *testing.T) {
	for name, test := range map[string]struct {
		live, restored string
		want           Verdict
	}{
		"equal":         {head + "data: {a: b}", head + "data: {a: b}", Verdict{State: InSync}},
		"changed":       {head + "data: {a: c}", head + "data: {a: b}", Verdict{State: Modified, Patch: `{"data":{"a":"b"}}`}},
		"removed":       {head + "data: {}", head + "data: {a: b}", Verdict{State: Modified, Patch: `{"data":{"a":"b"}}`}},
		"too much":      {head + "data: {a: b, c: d}", head + "data: {a: b}", Verdict{State: Modified, Patch: `{"data":{"c":null}}`}},
		"status":        {head + "status: {a: 1}", head + "status: {a: 2}", Verdict{State: InSync}},
		"server's part": {"apiVersion: v1\nkind: A\nmetadata: {name: x, resourceVersion: '1', generation: 1}", "apiVersion: v1\nkind: A\nmetadata: {name: x, resourceVersion: '2', generation: 2}", Verdict{State: InSync}},
		"a secret's values are hidden": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: c2VjcmV0}", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: b3RoZXI=}",
			Verdict{State: Modified, Patch: `{"data":{"a":"(hidden)"}}`},
		},
		"injected authority": {
			"apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: x}\nspec: {caBundle: QQ==, a: 1}",
			"apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: x}\nspec: {caBundle: Qg==, a: 1}", Verdict{State: InSync},
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := object(t, test.live)
			before := live.DeepCopy()
			got := Compare(live, object(t, test.restored), Rules{})
			if (got.Exception != nil) != (got.State == Modified) {
				t.Errorf("exception %+v", got.Exception)
			}
			got.Exception = nil
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before.Object, live.Object); diff != "" {
				t.Errorf("the live object was changed: %s", diff)
			}
		})
	}
}

func TestPatchIsBounded(t *testing.T) {
	long := strings.Repeat("x", 3*MaxPatch)
	verdict := Compare(object(t, head+"data: {a: b}"), object(t, head+"data: {a: "+long+"}"), Rules{})
	if verdict.Patch != `{"data":{"a":"…"}}` {
		t.Errorf("patch %q", verdict.Patch)
	}
	var many strings.Builder
	many.WriteString(head + "data:\n")
	for range 600 {
		many.WriteString("  " + long[:many.Len()%40+1] + strings.Repeat("y", many.Len()%97) + ": a\n")
	}
	// Duplicate keys are no YAML; only the bound matters here.
	parsed := &unstructured.Unstructured{}
	if data, err := yaml.YAMLToJSON([]byte(many.String())); err == nil && parsed.UnmarshalJSON(data) == nil {
		if verdict := Compare(object(t, head), parsed, Rules{}); len(verdict.Patch) > MaxPatch+len("…") {
			t.Errorf("patch of %d bytes", len(verdict.Patch))
		}
	}
}

func TestRules(t *testing.T) {
	live := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: ns}\nspec: {replicas: 5, list: [{a: 1}, {a: 2}]}"
	restored := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: ns}\nspec: {replicas: 1, list: [{a: 1}, {a: 3}]}"
	exactly := fleet.ComparePatch{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Namespace: "ns"}
	with := func(p fleet.ComparePatch, operations []fleet.Operation, pointers ...string) []fleet.ComparePatch {
		p.Operations, p.JsonPointers = operations, pointers
		return []fleet.ComparePatch{p}
	}
	both := []fleet.Operation{{Op: "remove", Path: "/spec/replicas"}, {Op: "remove", Path: "/spec/list/1"}}
	for name, test := range map[string]struct {
		patches []fleet.ComparePatch
		want    State
	}{
		"none":                         {nil, Modified},
		"operations":                   {with(exactly, both), InSync},
		"operations of another name":   {with(fleet.ComparePatch{APIVersion: "apps/v1", Kind: "Deployment", Name: "other", Namespace: "ns"}, both), Modified},
		"removing what is not there":   {with(exactly, append(both, fleet.Operation{Op: "remove", Path: "/spec/nothing"})), InSync},
		"one that fails cancels all":   {with(exactly, append(both, fleet.Operation{Op: "replace", Path: "/spec/nothing", Value: "1"})), Modified},
		"replace":                      {with(exactly, []fleet.Operation{{Op: "replace", Path: "/spec/replicas", Value: "3"}, {Op: "remove", Path: "/spec/list"}}), InSync},
		"pointers":                     {with(exactly, nil, "/spec/replicas", "/spec/list/1/a"), InSync},
		"pointers to any name":         {with(fleet.ComparePatch{APIVersion: "apps/v1", Kind: "Deployment"}, nil, "/spec/replicas", "/spec/list"), InSync},
		"pointers by glob":             {with(fleet.ComparePatch{APIVersion: "a*/v1", Kind: "Deploy*"}, nil, "/spec/replicas", "/spec/list"), InSync},
		"pointers to another kind":     {with(fleet.ComparePatch{APIVersion: "apps/v1", Kind: "StatefulSet"}, nil, "/spec"), Modified},
		"pointers that lead nowhere":   {with(exactly, nil, "", "spec", "/spec/replicas/x", "/spec/list/9", "/spec/list/x"), Modified},
		"half of it":                   {with(exactly, nil, "/spec/replicas"), Modified},
		"a pointer with escaped signs": {with(exactly, nil, "/spec/replicas", "/spec/list", "/a~1b~0c"), InSync},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := NewRules(&fleet.DiffOptions{ComparePatches: test.patches})
			if err != nil {
				t.Fatal(err)
			}
			if got := Compare(object(t, live), object(t, restored), rules); got.State != test.want {
				t.Errorf("got %+v, want %s", got, test.want)
			}
		})
	}
}

func TestHides(t *testing.T) {
	ignore := []fleet.Operation{{Op: "ignore"}}
	for name, test := range map[string]struct {
		patch fleet.ComparePatch
		want  bool
	}{
		"exact":             {fleet.ComparePatch{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "x", Operations: ignore}, true},
		"any name":          {fleet.ComparePatch{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Operations: ignore}, true},
		"expression":        {fleet.ComparePatch{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "^[w-y]$", Operations: ignore}, true},
		"other name":        {fleet.ComparePatch{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "z", Operations: ignore}, false},
		"other namespace":   {fleet.ComparePatch{APIVersion: "v1", Kind: "ConfigMap", Name: "x", Operations: ignore}, false},
		"without operation": {fleet.ComparePatch{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := NewRules(&fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{test.patch}})
			if err != nil {
				t.Fatal(err)
			}
			if got := rules.Hides(object(t, head)); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if _, err := NewRules(&fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{{Name: "(", Operations: ignore}}}); err == nil {
		t.Error("a name that is no expression is accepted")
	}
}

func FuzzPointer(f *testing.F) {
	f.Add("/spec/list/0/a")
	f.Add("/spec/~01~1")
	f.Fuzz(func(t *testing.T, pointer string) {
		rules, err := NewRules(&fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{{Kind: "*", APIVersion: "*", JsonPointers: []string{pointer}}}})
		if err != nil {
			t.Fatal(err)
		}
		rules.Normalize(object(t, "apiVersion: v1\nkind: A\nspec: {list: [{a: 1}, [1, 2]], text: x}"))
	})
}

func TestDigest(t *testing.T) {
	one, err := Digest(object(t, head+"data: {a: b}\nstatus: {x: 1}"))
	if err != nil {
		t.Fatal(err)
	}
	same, _ := Digest(object(t, head+"data: {a: b}\nstatus: {x: 2}"))
	other, _ := Digest(object(t, head+"data: {a: c}"))
	if one != same || one == other {
		t.Error("the digest does not follow the comparable form")
	}
}
