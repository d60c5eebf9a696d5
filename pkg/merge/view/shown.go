package view

import (
	"slices"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

type key struct{ namespace, name string }

func keyOf(object *fleet.BundleDeployment) key { return key{object.Namespace, object.Name} }

// shown is what is known of all deployments.
type shown struct {
	// alone are those with an object of their own.
	alone map[key]*fleet.BundleDeployment
	// parts are those in merged objects, by carrier, and carriers lead to them.
	parts    map[key][]*fleet.BundleDeployment
	carriers map[key][]key
}

func newShown() *shown {
	return &shown{alone: map[key]*fleet.BundleDeployment{}, parts: map[key][]*fleet.BundleDeployment{}, carriers: map[key][]key{}}
}

// get returns what is shown of a deployment, nil if nothing carries it.
func (s *shown) get(k key) *fleet.BundleDeployment {
	alone, carriers := s.alone[k], s.carriers[k]
	if len(carriers) == 0 {
		return alone
	}
	var carried []*fleet.BundleDeployment
	if alone != nil {
		carried = append(carried, alone)
	}
	for _, carrier := range carriers {
		for _, part := range s.parts[carrier] {
			if part.Name == k.name {
				carried = append(carried, part)
			}
		}
	}
	return merge.Combine(carried)
}

// keysOf returns the deployments that an object carries or will carry when it carries what is given.
func (s *shown) keysOf(carrier key, carried []*fleet.BundleDeployment) []key {
	var keys []key
	for _, deployment := range carried {
		keys = append(keys, keyOf(deployment))
	}
	before := []key{}
	if s.alone[carrier] != nil {
		before = append(before, carrier)
	}
	for _, part := range s.parts[carrier] {
		before = append(before, keyOf(part))
	}
	for _, k := range before {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// set notes what an object carries now and returns all deployments that this may have changed.
func (s *shown) set(carrier key, carried []*fleet.BundleDeployment) []key {
	keys := s.keysOf(carrier, carried)
	delete(s.alone, carrier)
	for _, part := range s.parts[carrier] {
		k := keyOf(part)
		left := slices.DeleteFunc(s.carriers[k], func(other key) bool { return other == carrier })
		if s.carriers[k] = left; len(left) == 0 {
			delete(s.carriers, k)
		}
	}
	delete(s.parts, carrier)
	if len(carried) == 1 && keyOf(carried[0]) == carrier {
		s.alone[carrier] = carried[0]
		return keys
	}
	if len(carried) > 0 {
		s.parts[carrier] = carried
	}
	for _, part := range carried {
		s.carriers[keyOf(part)] = append(s.carriers[keyOf(part)], carrier)
	}
	return keys
}
