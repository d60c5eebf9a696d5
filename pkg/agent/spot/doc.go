// Package spot watches a few objects that carry no owner's mark: the pods of a workload that is not ready, the
// warnings about them, an object that a bundle only looks at. Each watch is as narrow as the API server's selectors
// make it, runs as the identity it is asked for, is shared by all who want the same, and ends with its last user.
//
// How many there may be at a time is bounded; beyond that nothing is known, which is never an error. What is
// watched by the owner's mark is the business of package live.
//
// Start reading with Watcher.
package spot
