// Package apply is `fleet apply`: folders become Bundles, which are printed or written to a hub. Flags
// and their meaning are upstream's, so that pipelines need no change.
//
// Writing follows the hub's rules: a Bundle that belongs to somebody else is never touched, values are
// written before the Bundle that names them, what is equal is not written, and nothing is removed while
// any path could not be read.
//
// Start reading with Command.
package apply
