// Package feed keeps the roll-up of all BundleDeployments current from one informer, wakes up the
// controllers of Bundles, GitRepos and Clusters when their numbers changed, and says when they may write
// them. Bundles and GitRepos are told of a single change at once and of a wave of changes now and then, ever more
// rarely; Clusters, which every change of a bundle touches, when the wave is over. It is over when nothing was heard
// for a moment and no deployments are being written. Within two seconds of the last change all are told, whatever
// came before.
//
// It counts and paces; what a status says is decided in pkg/status and written by the controller that
// owns the object. Until the informer has delivered everything, no number is given out.
//
// Start reading with Feed, then calm for the pace.
package feed
