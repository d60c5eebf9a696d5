// Package heartbeat tells the hub that the agent is there, by a Lease in the cluster's namespace, and what it is, by
// annotations of that Lease (pkg/cluster reads them).
//
// It registers nothing: with an identity that the hub does not know any more it goes on, and says so to whoever can
// get another.
//
// Start reading with Sender.Run.
package heartbeat
