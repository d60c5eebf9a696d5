package concede

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/fieldpath"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ReasonInvalidFields means that fields to ignore cannot be read.
const ReasonInvalidFields = "InvalidIgnoreFields"

// Fields returns what is desired with the live values of the fields that are left to the member. To leave them out
// instead would take away those that nobody else owns. Previous is what was applied before: a field left alone
// until git changes it is compared with that; nil means that nothing is known to have been applied. With
// unchanged, git is known not to have changed. Desired is returned itself where nothing is left.
func Fields(left []fleet.IgnoreFields, desired, live, previous *unstructured.Unstructured, unchanged bool) (*unstructured.Unstructured, error) {
	if live == nil || len(left) == 0 {
		return desired, nil
	}
	adapted := desired.DeepCopy()
	var before map[string]any
	if previous != nil {
		before = previous.Object
	}
	for _, fields := range left {
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
