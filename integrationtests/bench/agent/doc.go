// Package agent measures the agent alone: how long it takes to create, change, correct and delete what
// BundleDeployments ask for, next to what the same API server takes for the plain writes, how often it
// writes to the hub, and what it holds and computes. There is no fleet-controller: the benchmarks write
// BundleDeployments themselves.
//
// Nothing fails because it was slow: a figure next to its limit says so. Counts of writes do fail.
//
// Start reading with bench_test.go and rounds_test.go.
package agent
