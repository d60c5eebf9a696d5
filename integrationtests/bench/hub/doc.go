// Package hub measures the hub under a large fleet: a real control plane, the real fleet-controller, and
// clusters and agents that are played by this process.
//
// What is played: every cluster is a Cluster object with a lease that is renewed, and every
// BundleDeployment is answered by the status an agent would write, made by the agent's own package. What
// is not: members. All agents share one connection and one watch.
//
// Each phase stands next to its floor: the same number of writes of the same size to a kind of the same
// schema that nobody watches, on the same API server, just before.
//
// Start reading at BenchmarkHub.
package hub
