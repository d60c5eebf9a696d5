package fleetyaml

import (
	"fmt"
	"slices"

	"github.com/fairlead-dev/fairlead/pkg/agent/fieldpath"
	"github.com/fairlead-dev/fairlead/pkg/agent/health/rules"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

var strategies = []fleet.ApplyStrategy{"", fleet.ApplyHelm, fleet.ApplyServerSide, fleet.ApplyCreateOnly, fleet.ApplyReadOnly}

// checkManifestConfig looks at what is said about some of the objects.
func (p *parser) checkManifestConfig(path string, config fleet.ManifestConfig) {
	p.checkApply(join(path, "apply"), config.Apply)
	if config.Apply == nil && len(config.ConditionRules) == 0 {
		p.warn(p.at(path), "%s: has neither apply nor conditionRules, so it has no effect", path)
	}
	for i, rule := range config.ConditionRules {
		at := fmt.Sprintf("%s.conditionRules[%d]", path, i)
		if err := rules.Check(rule); err != nil {
			p.fail(p.at(at), "%s (%s): %v", at, rules.NameOf(rule), err)
		}
	}
}

// checkApply finds strategies and fields that the agent would not understand.
func (p *parser) checkApply(path string, apply *fleet.ApplyOptions) {
	if apply == nil {
		return
	}
	if !slices.Contains(strategies, apply.Strategy) {
		at := join(path, "strategy")
		p.fail(p.at(at), "%s: want Helm, ServerSideApply, CreateOnly or ReadOnly, got %q", at, apply.Strategy)
	}
	for i, fields := range apply.IgnoreFields {
		at := fmt.Sprintf("%s[%d]", join(path, "ignoreFields"), i)
		if fields.Condition != fleet.OnMemberPresent && fields.Condition != fleet.OnMemberChange {
			p.fail(p.at(at), "%s.condition: want %s or %s, got %q", at, fleet.OnMemberPresent, fleet.OnMemberChange, fields.Condition)
		}
		if len(fields.JSONPointers)+len(fields.JSONPaths) == 0 {
			p.fail(p.at(at), "%s: names no field; it needs jsonPointers or jsonPaths", at)
		}
		for j, pointer := range fields.JSONPointers {
			if _, err := fieldpath.ParsePointer(pointer); err != nil {
				p.fail(p.at(fmt.Sprintf("%s.jsonPointers[%d]", at, j)), "%s.jsonPointers[%d]: %v", at, j, err)
			}
		}
		for j, text := range fields.JSONPaths {
			if _, err := fieldpath.ParsePath(text); err != nil {
				p.fail(p.at(fmt.Sprintf("%s.jsonPaths[%d]", at, j)), "%s.jsonPaths[%d]: %v", at, j, err)
			}
		}
	}
}
