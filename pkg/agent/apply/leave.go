package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/fieldpath"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ReasonInvalidFields means that fields to ignore cannot be read.
const ReasonInvalidFields = "InvalidIgnoreFields"

// plan is how one object is written, read from the object itself.
type plan struct {
	fleet.ApplyOptions
	// desired is the object as it is sent.
	desired *unstructured.Unstructured
}

// planFor reads how an object is written. Hooks live by Helm's rules.
func planFor(object *unstructured.Unstructured) (plan, error) {
	how, sent, err := manifest.How(object)
	if err != nil {
		return plan{}, fault.Wrap(fault.Stalled, ReasonInvalidFields, err)
	}
	return plan{ApplyOptions: how, desired: sent}, nil
}

// conceding returns what is desired with the live values of the fields that are left to the member. To leave
// them out instead would take away those that nobody else owns. Previous is what was applied before: a field
// left alone until git changes it is compared with that; nil means that nothing is known to have been applied.
// With unchanged, git is known not to have changed.
func (p plan) conceding(live, previous *unstructured.Unstructured, unchanged bool) (*unstructured.Unstructured, error) {
	if live == nil || len(p.IgnoreFields) == 0 {
		return p.desired, nil
	}
	adapted := p.desired.DeepCopy()
	var before map[string]any
	if previous != nil {
		before = previous.Object
	}
	for _, fields := range p.IgnoreFields {
		paths, err := pathsOf(fields)
		if err != nil {
			return nil, err
		}
		var unless *fieldpath.Unless
		if fields.Condition == fleet.OnMemberChange && !unchanged {
			unless = fieldpath.ChangedSince(before)
		}
		for _, path := range paths {
			path.Carry(adapted.Object, live.Object, unless)
		}
	}
	return adapted, nil
}

func pathsOf(fields fleet.IgnoreFields) ([]fieldpath.Path, error) {
	var paths []fieldpath.Path
	add := func(path fieldpath.Path, err error) error {
		if err != nil {
			return fault.Wrap(fault.Stalled, ReasonInvalidFields, fmt.Errorf("ignoreFields: %w", err))
		}
		paths = append(paths, path)
		return nil
	}
	for _, text := range fields.JSONPointers {
		if err := add(fieldpath.ParsePointer(text)); err != nil {
			return nil, err
		}
	}
	for _, text := range fields.JSONPaths {
		if err := add(fieldpath.ParsePath(text)); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// forces says whether fields are taken from other managers.
func (p plan) forces() bool { return p.Force == nil || *p.Force }

// isPlain says that the object is written as it is, whatever is there.
func (p plan) isPlain() bool {
	return p.forces() && len(p.IgnoreFields) == 0 && p.Strategy != fleet.ApplyCreateOnly && p.Strategy != fleet.ApplyReadOnly
}

// check returns nil when the claim may write the live object, or leave it as it is.
func (p plan) check(claim Claim, live *unstructured.Unstructured) error {
	switch {
	case manifest.IsHook(p.desired):
		return claim.CheckHook(live)
	case p.Strategy == fleet.ApplyCreateOnly:
		claim.TakeOwnership = true // nobody's object is not taken, it is left
	}
	return claim.Check(live)
}
