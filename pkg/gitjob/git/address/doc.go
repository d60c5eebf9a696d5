// Package address reads the addresses of git repositories in the forms people write them:
// http(s)://host/path, ssh://user@host:port/path and user@host:path.
//
// It is pure, and refuses what a server must never be asked to open for a tenant: local paths,
// file://, and transport helpers such as ext::. What it prints never holds a password.
//
// Start reading at Parse; Canonical says when two addresses name the same repository.
package address
