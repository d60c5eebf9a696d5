package sight

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
)

// An answer to a write stands until the watch shows the same or something newer; what cannot be compared is no answer.
func TestOlder(t *testing.T) {
	object := func(uid, version string) *unstructured.Unstructured {
		made := &unstructured.Unstructured{Object: map[string]any{}}
		made.SetUID(types.UID(uid))
		made.SetResourceVersion(version)
		return made
	}
	for name, test := range map[string]struct {
		a, b *unstructured.Unstructured
		want bool
	}{
		"older":              {object("a", "9"), object("a", "10"), true},
		"the same":           {object("a", "10"), object("a", "10"), false},
		"newer":              {object("a", "11"), object("a", "10"), false},
		"made anew since":    {object("a", "9"), object("b", "10"), true},
		"another, as old":    {object("a", "10"), object("b", "10"), false},
		"no versions":        {object("a", ""), object("a", "10"), false},
		"versions are words": {object("a", "x"), object("a", "y"), false},
	} {
		if got := older(test.a, test.b); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Only a selector that selects something names a workload's pods.
func TestPodsOf(t *testing.T) {
	for name, test := range map[string]struct {
		spec map[string]any
		want string
	}{
		"labels":           {map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "a"}}}, "app=a"},
		"no selector":      {map[string]any{}, ""},
		"everything":       {map[string]any{"selector": map[string]any{}}, ""},
		"a plain map":      {map[string]any{"selector": map[string]any{"app": "a"}}, ""},
		"a wrong operator": {map[string]any{"selector": map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Like"}}}}, ""},
	} {
		workload := &unstructured.Unstructured{Object: map[string]any{"spec": test.spec}}
		workload.SetNamespace("n")
		target, ok := podsOf(workload, &access.Identity{Name: "tenant"})
		if ok != (test.want != "") || target.LabelSelector != test.want {
			t.Errorf("%s: %+v, %t", name, target, ok)
		}
		if ok && (target.Namespace != "n" || target.Identity != "tenant") {
			t.Errorf("%s: %+v", name, target)
		}
	}
}
