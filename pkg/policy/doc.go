// Package policy says what the Policies and GitRepoRestrictions of a namespace allow: which repositories
// and credentials its GitRepos may use, as which service account and in which namespaces its bundles may
// run. It refuses with errors of class fault.Denied that name the rule and what it would take; it reads
// nothing and changes nothing.
//
// The rules of a namespace add up: what one object allows is allowed, what one object demands is demanded.
// The source is checked where it is read (Rules.GitRepo), and what a bundle asks for where its options
// are final for a cluster (Rules.Deployment), so that neither a target's customization nor a Bundle that no
// GitRepo made goes past them.
//
// Start reading with Rules.
package policy
