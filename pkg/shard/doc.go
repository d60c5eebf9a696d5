// Package shard decides which process works on which object, so that every object has one writer at any time.
//
// Work is split in a fixed number of shards by the hash of a key (namespace and name). A process works on a key
// while it has the tenure of its shard. With one leader there is one shard, whose tenure is the election's.
// In automatic mode the replicas share the shards by rendezvous hashing: each renews a Lease that says it is
// alive, and a table, one object changed only by compare and swap, says who has which shard. A shard passes on
// when its holder has given it up with no work under way, or when the holder's Lease was not renewed for as
// long as it lasts, as seen by the clock of whoever takes it. Beside that, a controller with a shard id works
// only on objects that carry it as label fleet.cattle.io/shard-ref.
//
// A tenure ends before others may take it: when it was not renewed in time its contexts end, and Fence refuses
// writes made under it, also by a process that was stopped and goes on. What cannot be prevented by a client
// is a request that was on its way when its process was stopped.
//
// It refuses to take a shard because of what a list lacks: that a holder is gone is read from its own Lease.
//
// Start reading at Shards, then members.go.
package shard
