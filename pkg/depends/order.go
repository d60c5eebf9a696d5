package depends

import (
	"slices"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// WaitsFor returns those of the bundles that one waits for, in the order given; itself only when it names itself. An entry
// that cannot be read means none: with it a bundle goes nowhere.
func WaitsFor(bundle *fleet.Bundle, all []*fleet.Bundle) []*fleet.Bundle {
	var references, named []Reference
	for _, entry := range bundle.Spec.DependsOn {
		reference, err := Read(entry, bundle.Namespace)
		if err != nil {
			continue
		}
		if references = append(references, reference); entry.Name != "" {
			named = append(named, reference)
		}
	}
	if len(references) == 0 {
		return nil
	}
	var meant []*fleet.Bundle
	for _, other := range all {
		labels, candidates := LabelsOf(other), references
		if same(bundle, other) {
			candidates = named // a selector never means the bundle it stands in
		}
		if slices.ContainsFunc(candidates, func(reference Reference) bool { return reference.Means(labels) }) {
			meant = append(meant, other)
		}
	}
	return meant
}

func same(a, b *fleet.Bundle) bool { return a.Namespace == b.Namespace && a.Name == b.Name }

// Order returns what is of bundles in an order in which each comes after those that its bundle waits for; otherwise it stays
// in the order given. In a circle one has to come first: it is the first of those given.
func Order[T any](items []T, bundleOf func(T) *fleet.Bundle) []T {
	all, byBundle := make([]*fleet.Bundle, 0, len(items)), make(map[*fleet.Bundle]T, len(items))
	for _, item := range items {
		bundle := bundleOf(item)
		all, byBundle[bundle] = append(all, bundle), item
	}
	ordered := make([]T, 0, len(items))
	visited := map[*fleet.Bundle]bool{}
	var visit func(bundle *fleet.Bundle)
	visit = func(bundle *fleet.Bundle) {
		if visited[bundle] {
			return
		}
		visited[bundle] = true
		for _, first := range WaitsFor(bundle, all) {
			visit(first)
		}
		ordered = append(ordered, byBundle[bundle])
	}
	for _, bundle := range all {
		visit(bundle)
	}
	return ordered
}

// Before returns the bundles that have to be delivered before one is: those that it waits for, but for those that wait for it
// in turn. What is in a circle goes nowhere, and must be delivered to say so.
func Before(bundle *fleet.Bundle, all []*fleet.Bundle) []*fleet.Bundle {
	return slices.DeleteFunc(WaitsFor(bundle, all), func(first *fleet.Bundle) bool {
		return leadsTo(first, bundle, all, map[*fleet.Bundle]bool{})
	})
}

// leadsTo says that a bundle is another one, or waits for it.
func leadsTo(from, to *fleet.Bundle, all []*fleet.Bundle, visited map[*fleet.Bundle]bool) bool {
	if same(from, to) {
		return true
	}
	if visited[from] {
		return false
	}
	visited[from] = true
	return slices.ContainsFunc(WaitsFor(from, all), func(next *fleet.Bundle) bool { return leadsTo(next, to, all, visited) })
}
