// Package inventory says which clusters a bundle can reach: those of a hub, or those of a file that
// stands in for one. The rules are the hub's: the bundle's own namespace, and the namespaces that a
// BundleNamespaceMapping opens to it.
//
// It decides no targets (package target does) and changes nothing. Start reading with Load and
// Inventory.For.
package inventory
