// Package pair runs the real agent between a hub and a member, without fleet-controller: a test writes
// Contents and BundleDeployments as the controller would, and so decides what the agent is asked for and
// when. The agent has the administrator's rights on both sides; rights are tested elsewhere.
//
// It installs the definitions on the hub, gives the agent the identity that a registration would have
// given it, and runs it as a process that can be killed and started again. It starts no clusters.
//
// Start reading with Start.
package pair
