// Package feed keeps the roll-up of all BundleDeployments current from one informer and tells the
// controllers of Bundles, GitRepos and Clusters when their numbers changed: at once for the first change
// of an object, then at most once an interval.
//
// It counts and notifies; what a status says is decided in pkg/status and written by the controller that
// owns the object. Until the informer has delivered everything, no number is given out.
//
// Start reading with Feed.
package feed
