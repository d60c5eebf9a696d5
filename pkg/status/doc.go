// Package status says how deployments do: the state of one BundleDeployment, and the one roll-up of many
// into a Bundle, GitRepo, HelmOp, Cluster or ClusterGroup, with the words that people and Rancher's
// dashboard read.
//
// The roll-up (Index) is arithmetic in memory: each change of a deployment changes counts by constant work,
// and after the last change the counts are those of a fresh count. Lists in statuses are capped, sorted and
// stable, so that a status neither grows with the fleet nor changes without cause.
//
// Times are given by the caller. It reads and writes no object. Start reading with Of, Index and the
// builders in bundle.go, source.go and cluster.go.
package status
