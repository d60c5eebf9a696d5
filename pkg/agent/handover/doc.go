// Package handover lets objects move between bundles without being deleted on the way: the new owner takes an object
// over before the old one lets it go. Whoever drops objects, or leaves, waits until every deployment that has something
// new to deploy has tried it once, and spares what those asked for. Volumes are worth more patience than the rest: their
// data cannot be made anew.
//
// It remembers who holds what, who asked whom for what and who was tried, in memory alone: after a restart all are tried
// again. It decides and never writes or deletes anything; and it refuses to let go of an object whose owner's deployment
// stays and still wants it.
//
// Start reading with Ledger.Yields, which the new owner asks, and Ledger.Divide, which the old one does.
package handover
