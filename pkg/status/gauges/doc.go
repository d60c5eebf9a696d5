// Package gauges tells what the statuses of GitRepos, Bundles, Clusters and ClusterGroups say as metrics, by
// the names that Rancher Fleet gives them. They are read from the caches when somebody asks, so that nothing
// has to be kept current, and series of objects and versions that are gone are gone too.
//
// It refuses to tell of single BundleDeployments: there is one for each pair of bundle and cluster. It
// counts them by state.
//
// Start reading with Collector.
package gauges
