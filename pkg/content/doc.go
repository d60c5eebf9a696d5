// Package content gives a bundle's files and options their canonical form and their names: the
// manifest and its digest, the deployment id, the digest of Helm values, and the encoding of files
// inside a Bundle. Equal input gives equal names on every hub, agent and command line, and on
// upstream's: swapping the engine moves no id. It stores nothing.
//
// Start reading with Manifest and DeploymentID.
package content
