// Package charts installs the charts of this repository on real clusters, as helm does, for tests and
// the demo program.
//
// It uses Helm's own action package, so that what a chart creates, and what its schema refuses, is what
// a person would get. It refuses to wait for workloads: where programs run as local processes, the pods
// of a chart's Deployment have nothing to run.
//
// Start reading at Install; Render shows what a chart makes without a cluster.
package charts
