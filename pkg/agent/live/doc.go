// Package live keeps the objects that bundles own on a member in memory, up to date by watches: one
// informer for each kind that a bundle uses, filtered by the owner label, trimmed of what nobody
// reads. Informers start when a kind is first needed and stop when no bundle uses it any more; unrelated
// objects cost nothing.
//
// It refuses to guess: while a kind is not listed yet, or cannot be watched (its definition is missing,
// the agent may not), its objects are Unknown, and Known says so.
//
// Start reading with Watcher.
package live
