package rules

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ReasonInvalidRule is the reason of the errors.
const ReasonInvalidRule = "InvalidConditionRule"

const (
	// maxCost bounds one evaluation, in CEL's units; a rule over an ordinary object costs some tens.
	maxCost = 100_000
	// maxExpression bounds the text of an expression.
	maxExpression = 4096
	// maxRules bounds the rules of a bundle.
	maxRules = 100
)

// environment is made once, when the first rule is compiled: it is the same for all and never changes.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(cel.Variable("object", cel.DynType), cel.OptionalTypes(), ext.Strings())
})

// Set is the rules of a bundle, ready for use. The zero value asks for nothing.
type Set struct{ rules []rule }

type rule struct {
	fleet.ConditionRule
	resource fleet.ResourceSelector
	program  cel.Program // nil for a condition
	wrong    string      // why the rule cannot be used
}

// New compiles the rules of a bundle's configurations. The error joins one for each rule that is wrong; in the
// set such a rule holds for no object.
func New(configs []fleet.ManifestConfig) (Set, error) {
	var set Set
	var failures []error
	for i, config := range configs {
		for j, wanted := range config.ConditionRules {
			made, err := compile(wanted)
			if err != nil {
				where := fmt.Sprintf("manifestConfigs[%d].conditionRules[%d]", i, j)
				err = fault.New(fault.Stalled, ReasonInvalidRule, "%s (%s): %w", where, NameOf(wanted), err)
				failures = append(failures, err)
				made.wrong = err.Error()
			}
			made.resource = config.Resource
			set.rules = append(set.rules, made)
		}
	}
	if len(set.rules) > maxRules {
		err := fault.New(fault.Stalled, ReasonInvalidRule, "manifestConfigs: %d rules, at most %d are allowed", len(set.rules), maxRules)
		return Set{rules: []rule{{wrong: err.Error()}}}, err
	}
	return set, errors.Join(failures...)
}

// Check returns what is wrong with a rule, nil when it can be used.
func Check(wanted fleet.ConditionRule) error {
	_, err := compile(wanted)
	return err
}

// NameOf returns what people know a rule by.
func NameOf(wanted fleet.ConditionRule) string {
	return cmp.Or(wanted.Name, wanted.Condition, "no name")
}

func compile(wanted fleet.ConditionRule) (rule, error) {
	made := rule{ConditionRule: wanted}
	switch {
	case (wanted.Expression == "") == (wanted.Condition == ""):
		return made, errors.New("needs an expression or a condition, not both")
	case wanted.Condition != "":
		return made, nil
	case len(wanted.Expression) > maxExpression:
		return made, fmt.Errorf("the expression has %d bytes, at most %d are allowed", len(wanted.Expression), maxExpression)
	}
	env, err := environment()
	if err != nil {
		return made, err
	}
	checked, issues := env.Compile(wanted.Expression)
	if err := issues.Err(); err != nil {
		return made, fmt.Errorf("the expression cannot be compiled: %s", oneLine(err))
	}
	if kind := checked.OutputType(); !kind.IsExactType(cel.BoolType) && !kind.IsExactType(cel.DynType) {
		return made, fmt.Errorf("the expression yields %s, not true or false", kind)
	}
	made.program, err = env.Program(checked, cel.CostLimit(maxCost))
	return made, err
}

// oneLine keeps the words of CEL's error and drops its drawing of the place.
func oneLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	return strings.TrimPrefix(lines[0], "ERROR: <input>:")
}

// Unmet returns, for every rule about the object that does not hold, what people should read.
func (s Set) Unmet(object *unstructured.Unstructured) []string {
	var unmet []string
	for _, candidate := range s.rules {
		if !candidate.resource.Selects(object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName()) {
			continue
		}
		if problem := candidate.unmet(object); problem != "" {
			unmet = append(unmet, problem)
		}
	}
	return unmet
}

func (r rule) unmet(object *unstructured.Unstructured) string {
	switch {
	case r.wrong != "":
		return r.wrong
	case r.program == nil:
		if hasCondition(object, r.Condition) {
			return ""
		}
		return cmp.Or(r.Message, "condition "+r.Condition+" is not True")
	}
	label := "rule " + r.Name
	if r.Name == "" {
		label = "rule " + r.Expression
	}
	result, _, err := r.program.Eval(map[string]any{"object": object.Object})
	if err != nil {
		return cmp.Or(r.Message, fmt.Sprintf("%s cannot be evaluated: %v", label, err))
	}
	switch holds, isBool := result.Value().(bool); {
	case !isBool:
		return fmt.Sprintf("%s yields %s, not true or false", label, result.Type().TypeName())
	case holds:
		return ""
	}
	return cmp.Or(r.Message, label+" does not hold")
}

func hasCondition(object *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["type"] == kind {
			return fields["status"] == "True"
		}
	}
	return false
}
