// Package view shows the deployments that BundleDeployments carry, in place of the objects: what lists and
// watches through a Source never sees a merged object, but each of its parts as if it were alone (pkg/merge).
// It tells of a deletion when the last object that carries a deployment is deleted or comes without it, and
// never because an object is merely not there.
//
// It writes nothing.
//
// Start reading at New.
package view
