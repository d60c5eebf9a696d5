// Package rules holds what a bundle says about the readiness of its objects beyond what is known of their
// kinds: expressions in CEL over one object, and conditions that have to be True.
//
// An expression sees the object and nothing else, and what it may cost is bounded. One that cannot be compiled
// is an error of class fault.Stalled that names the rule; one that cannot be evaluated for an object does not
// hold for it. It is pure.
//
// Start reading with New and Set.Unmet.
package rules
