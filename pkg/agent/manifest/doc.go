// Package manifest reads what a release renders: it splits YAML into objects, tells one object from
// another (Key), puts objects in the order in which they can be created (Order) and sets the marks by
// which Helm finds its own (Adopt). It is pure: it asks no cluster, and it changes only what it is
// given.
//
// Start reading with Parse and Order.
package manifest
