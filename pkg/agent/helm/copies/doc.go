// Package copies keeps the Secrets and ConfigMaps that come from the hub along with a deployment (downstreamResources)
// in the namespace of its release.
//
// They are written before anything reads them, and those that no longer come along are deleted. What does not carry
// both the bundle's mark and that of a copy is never deleted.
//
// Start reading with Set.Write.
package copies
