// Package controller is the agent's loop: for every BundleDeployment of its cluster it gathers content
// and values, deploys them (package helm), looks at what is there (sight), corrects drift (pace says when) and reports,
// in one status write per change and at most one a second (hub).
//
// It works from memory while the hub is away: what is applied stays, drift is still corrected, and on
// return only the newest state counts. Releases are removed only when package removal finds their bundles gone, and
// objects that other bundles ask for are handed over before (handover): a failed or empty list removes nothing.
//
// Patching bundledeployments (their finalizers) is tried where a finalizer waits for the agent, and not
// missed where the hub forbids it.
//
// Start reading with Controller and reconcile.go.
package controller
