// Package builtin knows the kinds that Kubernetes itself has, with their Go types. It knows no others, and
// nothing about a particular cluster.
//
// Start reading with Type.
package builtin
