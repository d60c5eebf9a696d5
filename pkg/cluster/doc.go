// Package cluster decides about members of the fleet: whether an agent may join and as which Cluster,
// whether a certificate request asks for no more than its identity, in which phase a cluster is by its
// heartbeats, what its status says, and which objects on the hub belong to a cluster or to a
// registration token.
//
// It takes values and returns values. It reads nothing, writes nothing and looks at no clock; it refuses
// to decide about anything a member runs. Refusals are errors of class fault.Denied whose reason and
// message are meant for the person who has to act.
//
// Start reading at Phase for heartbeats, at CheckToken for joining, at Status for what people see.
package cluster
