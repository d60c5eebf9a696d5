package rules

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func TestUnmet(t *testing.T) {
	jar := `{apiVersion: e.com/v1, kind: Jar, metadata: {name: jar, namespace: ns}, spec: {lids: 2}, status: {phase: Bound, lids: 1, conditions: [{type: Sealed, status: "False"}, {type: Clean, status: "True"}]}}`
	for name, test := range map[string]struct {
		resource fleet.ResourceSelector
		rule     fleet.ConditionRule
		want     string // "" means that it holds
	}{
		"holds":                    {rule: fleet.ConditionRule{Expression: `object.status.phase == "Bound"`}},
		"does not hold":            {rule: fleet.ConditionRule{Name: "lids", Expression: `object.status.lids >= object.spec.lids`}, want: "rule lids does not hold"},
		"with words for people":    {rule: fleet.ConditionRule{Expression: `object.status.lids >= object.spec.lids`, Message: "lids are missing"}, want: "lids are missing"},
		"a field that is missing":  {rule: fleet.ConditionRule{Name: "deep", Expression: `object.status.deep.down == 1`}, want: "rule deep cannot be evaluated: no such key: deep"},
		"an optional field":        {rule: fleet.ConditionRule{Expression: `object.?status.deep.down.orValue(1) == 1`}},
		"has":                      {rule: fleet.ConditionRule{Expression: `has(object.status.phase) && !has(object.status.deep)`}},
		"lists":                    {rule: fleet.ConditionRule{Expression: `object.status.conditions.exists(c, c.type == "Clean" && c.status == "True")`}},
		"strings":                  {rule: fleet.ConditionRule{Expression: `object.status.phase.lowerAscii() == "bound"`}},
		"no truth value":           {rule: fleet.ConditionRule{Name: "lids", Expression: `object.status.lids`}, want: "rule lids yields int, not true or false"},
		"a condition":              {rule: fleet.ConditionRule{Condition: "Clean"}},
		"a condition that is not":  {rule: fleet.ConditionRule{Condition: "Sealed"}, want: "condition Sealed is not True"},
		"a condition not there":    {rule: fleet.ConditionRule{Condition: "Else"}, want: "condition Else is not True"},
		"another kind":             {resource: fleet.ResourceSelector{Kind: "Cup"}, rule: fleet.ConditionRule{Expression: `false`}},
		"another name":             {resource: fleet.ResourceSelector{Kind: "Jar", Name: "x"}, rule: fleet.ConditionRule{Expression: `false`}},
		"this kind":                {resource: fleet.ResourceSelector{APIVersion: "e.com/v1", Kind: "Jar", Namespace: "ns", Name: "jar"}, rule: fleet.ConditionRule{Expression: `false`}, want: "rule false does not hold"},
		"what costs too much ends": {rule: fleet.ConditionRule{Name: "loop", Expression: `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a + b + c + d + e + f > 0))))))`}, want: "rule loop cannot be evaluated: operation cancelled: actual cost limit exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := New([]fleet.ManifestConfig{{Resource: test.resource, ConditionRules: []fleet.ConditionRule{test.rule}}})
			if err != nil {
				t.Fatal(err)
			}
			object := &unstructured.Unstructured{}
			text, err := yaml.YAMLToJSON([]byte(jar))
			if err == nil {
				err = object.UnmarshalJSON(text)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(set.Unmet(object), "; "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		rule fleet.ConditionRule
		want string
	}{
		"syntax":       {fleet.ConditionRule{Name: "lid", Expression: "object."}, "manifestConfigs[0].conditionRules[0] (lid): the expression cannot be compiled: 1:8"},
		"another name": {fleet.ConditionRule{Name: "lid", Expression: "self.x"}, "undeclared reference to 'self'"},
		"no bool":      {fleet.ConditionRule{Expression: `"text"`}, "yields string"},
		"too long":     {fleet.ConditionRule{Expression: strings.Repeat(" ", maxExpression) + "true"}, "bytes"},
		"nothing":      {fleet.ConditionRule{}, "needs an expression or a condition"},
		"both":         {fleet.ConditionRule{Expression: "true", Condition: "Ready"}, "not both"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := New([]fleet.ManifestConfig{{ConditionRules: []fleet.ConditionRule{test.rule}}})
			if unmet := set.Unmet(&unstructured.Unstructured{}); len(unmet) != 1 || !strings.Contains(unmet[0], test.want) {
				t.Errorf("unmet %q", unmet)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want %q in one line", err, test.want)
			}
			if fault.ClassOf(err) != fault.Stalled || fault.ReasonOf(err) != ReasonInvalidRule {
				t.Errorf("class %v, reason %q", fault.ClassOf(err), fault.ReasonOf(err))
			}
		})
	}
	if _, err := New([]fleet.ManifestConfig{{ConditionRules: make([]fleet.ConditionRule, 2)}}); err == nil || !strings.Contains(err.Error(), "conditionRules[1]") {
		t.Errorf("not all wrong rules are named: %v", err)
	}
}

// Whatever an expression is, it is refused or ends.
func FuzzRule(f *testing.F) {
	f.Add(`object.a.all(x, x > 1)`)
	f.Add(`[object.a, "x"].map(y, string(y)).join("")`)
	f.Fuzz(func(t *testing.T, expression string) {
		set, err := New([]fleet.ManifestConfig{{ConditionRules: []fleet.ConditionRule{{Expression: expression}}}})
		if err == nil {
			set.Unmet(&unstructured.Unstructured{Object: map[string]any{"a": []any{int64(1), "b"}}})
		}
	})
}
