// Package security tests what a hostile member cluster, and whoever finds a registration token, can do to
// the hub and to other clusters: nothing but what is theirs. The hub is the real program with the identity of
// its chart, on a real API server that signs certificates.
package security
