// Package git answers two questions about git repositories for everybody in the process who asks:
// which commit is it now (Service.Resolve), and what is in that commit (Service.Checkout).
//
// However many callers ask, there is one reference listing per repository, credential and interval,
// and one fetch per commit; repeated fetches bring only what is new. Nothing is checked out: a commit
// is read from the object store as an io/fs file system. Hosts that fail are left alone for growing
// spans of time, each repository that fails likewise.
//
// The package runs no command, reads no git or SSH configuration, opens no local path, and keeps no
// state beyond the process: what a former process left in its folder is removed.
//
// Errors carry a class and reason of pkg/fault and name the repository without credentials. Foreign
// errors are translated in the subpackage wire, which speaks git's protocol. The subpackage store has
// the objects and the file system, credential reads Secrets, address reads URLs.
//
// Start reading at Service.
package git
