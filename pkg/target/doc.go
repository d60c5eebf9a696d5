// Package target plans a bundle's deployments: a frozen picture of the bundle, the clusters and the
// deployments that exist becomes the list of deployments to create, update and delete now. A converged
// world gives an empty list; a new pair is one create, a changed pair one update.
//
// The parts are packages of their own: match (which clusters, which targets), options (merging), values
// (rendering for a cluster), rollout (how many at a time).
//
// It renders nothing itself: it says what has to be rendered (Plan.Checks), and holds clusters back for which
// that fails or is not known yet; the others go on.
//
// It reads and writes nothing. It never deletes on doubt: a cluster that could not be planned keeps what
// it has, and many deletions that no person asked for wait for a confirmation (Guard).
//
// Start reading with Snapshot and NewPlan.
package target
