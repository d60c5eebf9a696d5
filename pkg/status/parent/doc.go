// Package parent makes the statuses of what deployments are rolled up into (Bundles, GitRepos, HelmOps, Clusters and
// ClusterGroups), with the words that people and Rancher's dashboard read. A roll-up of package tally becomes summary,
// display and Ready condition, together with what is known beside it: an error of the object itself, clusters that are
// held back, an agent that is not heard from.
//
// Lists in statuses are capped, sorted and stable, so that a status neither grows with the fleet nor changes without
// cause.
//
// Times are given by the caller. It refuses to count deployments, whose numbers come with the input, and reads and
// writes no object. Start reading with the builders in bundle.go, source.go and cluster.go.
package parent
