// Package cluster decides about members of the fleet: in which phase a cluster is by its heartbeats, what
// its status and that of its groups says, which labels it may have, and which objects on the hub belong
// to it. How a member joins is in the subpackage join.
//
// It takes values and returns values. It reads nothing, writes nothing and looks at no clock; it refuses
// to decide about anything a member runs.
//
// Start reading at Phase for heartbeats, at Status for what people see.
package cluster
