// Package store keeps the contents of bundles as Content objects on an API server: chunks first and the
// head last, so that whoever can read a head finds everything it names. What is there already is marked as
// needed instead of being written again.
//
// It needs create and patch of contents. It deletes nothing: the hub collects what nobody refers to, chunks
// of a set that was never finished included.
//
// Start reading with Store.Write.
package store
