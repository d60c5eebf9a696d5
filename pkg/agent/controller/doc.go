// Package controller is the agent's loop: for every BundleDeployment of its cluster it gathers content
// and values, deploys them, watches what is there, corrects drift and reports, in one status write per
// change and at most one a second.
//
// It works from memory while the hub is away: what is applied stays, drift is still corrected, and on
// return only the newest state counts. It removes a release only when its BundleDeployment was seen to
// go (a deletion timestamp, or a delete event that the hub confirms), or when a complete, not empty list
// has lacked it and the hub has denied it twice. A failed or empty list removes nothing, and so does a
// list that lacks more than half of what is deployed.
//
// Patching bundledeployments (their finalizers) is tried where a finalizer waits for the agent, and not
// missed where the hub forbids it.
//
// Start reading with Controller and reconcile.go.
package controller
