// Package registrar answers agents that want to join the hub: it makes registration tokens work, finds or
// makes the Cluster of a registration, and gives the agent its identity, a certificate signed by the
// hub's API server or, for agents that know no certificates, a service account.
//
// What may be granted is decided in pkg/cluster/join. The registrar never grants more than a registration
// was decided to get, waits by watches, and polls nothing; clocks end tokens and handovers. It makes its
// objects through Objects, so that what it finds in order it does not write.
//
// Start reading at Register, then registrations.go.
package registrar
