// Package feed keeps the roll-up of all BundleDeployments current from one informer, wakes up the
// controllers of Bundles, GitRepos, Clusters and ClusterGroups when their numbers changed, and says when they may write
// them. Bundles, GitRepos and ClusterGroups are told of a single change at once and of a wave of changes now and then,
// ever more rarely; Clusters, which every change of a bundle touches, when the wave is over or has gone past them. It is
// over when nothing was heard for a moment and no deployments are being written; it has gone past a Cluster for which
// none are written any more, and whose agent has nothing left to answer. Within two seconds of the last change all are
// told, whatever came before.
//
// It counts (with pkg/status/tally) and paces; what a status says is decided in pkg/status/parent and written by the
// controller that owns the object. Until the informer has delivered everything, no number is given out.
//
// Start reading with Feed, then calm for the pace.
package feed
