// Package controller runs the life of clusters on the hub: namespaces and rights of members, their phase
// by heartbeat, their removal, and groups. How members join is in the subpackage registrar.
//
// Each reconciler gathers what is stored, lets package cluster decide, writes what differs and patches
// the status at most once; when nothing differs it writes nothing. It waits by watches; clocks are asked
// only for heartbeats, expiry of tokens and the grace of a deletion. It refuses to touch what it did not
// make, and what it decides never depends on what an agent may write.
//
// Kinds of its own making (namespaces, leases, roles, token Secrets, signing requests) are cached apart
// from the manager's cache, filtered on the server, so that the hub holds no object it has no use for.
//
// Start reading at Register, then clusters.go.
package controller
