// Package registry keeps the contents of bundles as artifacts in an OCI registry, in upstream's layout, so
// that its agents read what we store and ours what it stores: repository <reference>/<id>, tag latest, an
// artifact of type application/fleet.manifest with one layer of type application/fleet.file that is the
// manifest's JSON and has the annotation id.
//
// What is read is checked against its id. Every request has a deadline and every answer a limit. Errors are
// transient, because whoever mends a registry or its credentials tells nobody here; they name the registry
// and never a credential.
//
// Start reading with Access and Client.
package registry
