// Package feed keeps the roll-up of all BundleDeployments current from one informer, wakes up the
// controllers of Bundles, GitRepos and Clusters when their numbers changed, and says when they may write
// them. Bundles and GitRepos are told of the first change at once, then a second after, then ever more
// rarely while changes go on; Clusters, which every change of a bundle touches, when it is over. Within two
// seconds of the last change all are told, whatever came before.
//
// It counts and paces; what a status says is decided in pkg/status and written by the controller that
// owns the object. Until the informer has delivered everything, no number is given out.
//
// Start reading with Feed, then calm for the pace.
package feed
