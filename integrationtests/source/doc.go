// Package source tests what reads repositories and charts as a whole, from a server to Bundles: the same
// bundles offline and on the hub, memory, and servers that stall. It needs no cluster.
package source
