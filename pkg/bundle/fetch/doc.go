// Package fetch gets charts from where they are published: Helm repositories, OCI registries, and
// archives on web servers. It owns these outside systems and translates their errors (package fault).
//
// Credentials go only to URLs the owner bound them to, and never along a redirect to another host or in
// the clear unless that is asked for. Every read has a deadline and a limit. What was fetched is kept on
// disk, by digest or with the server's validators, so that looking again costs a question and no
// download; what one set of credentials fetched is not given to another.
//
// It runs no plugin, reads no environment and no configuration of Helm's or Docker's, and does not
// fetch from git yet.
//
// Start reading with New and Source.Fetch.
package fetch
