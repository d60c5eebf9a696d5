// Package fetch gets charts from where they are published: Helm repositories, OCI registries,
// archives on web servers, and git. It owns these outside systems and translates their errors (package fault).
//
// Credentials go only to URLs the owner bound them to, and never along a redirect to another host or in
// the clear unless that is asked for. Every read has a deadline and a limit. What was fetched is kept on
// disk, by digest or with the server's validators, so that looking again costs a question and no
// download; what one set of credentials fetched is not given to another.
//
// It runs no plugin and reads no environment and no configuration of Helm's or Docker's. Charts from git
// come through a function of the caller's: package fetch packs them, and does not speak git.
//
// Start reading with New and Source.Fetch.
package fetch
