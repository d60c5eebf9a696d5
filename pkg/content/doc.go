// Package content gives a bundle's files and options their canonical form and their names: the
// manifest and its digest, the deployment id, the digest of Helm values, and the encoding of files
// inside a Bundle. Equal input gives equal names on every hub, agent and command line, and on
// upstream's: swapping the engine moves no id.
//
// It also plans the objects that hold a manifest on the hub, none larger than an API server takes: one
// Content while that is enough, else a head and its chunks; and which Bundles cannot hold their files
// themselves. It stores nothing and reads nothing but what it is given.
//
// Start reading with Manifest, DeploymentID and Stored.Objects.
package content
