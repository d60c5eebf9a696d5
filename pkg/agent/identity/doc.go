// Package identity is who the agent is on its hub: the credential that the agent's namespace on the member keeps, the
// key and certificate request that it comes from, and the connection that uses it and goes on when it is swapped.
//
// Keys are made here and leave neither the process nor the Secrets of the agent's namespace. Errors never quote a
// credential. The package asks the hub for nothing; pkg/agent/join does.
//
// Start reading with Credential and Connection.
package identity
