// Package controller follows GitRepos: it looks at their repositories, turns a new commit into Bundles
// and says on the GitRepo how far that went.
//
// What was seen and what was applied are two facts: status.pollingCommit is the commit last seen,
// status.commit the last one whose Bundles are all stored. A source that could not be read completely
// changes nothing; a path that matches nothing prunes nothing; a Bundle of another owner is never
// overwritten.
//
// A pass over one GitRepo is: look (resolve the commit when it is time), read (package sources: the tree into
// wanted Bundles), plan and execute (package bundles: what to create, update and delete), observe (pure: the
// status), one status patch. What fails is tried again with growing pauses, also what only a person can mend: the
// mending may be done where nobody watches. What a pass learned is kept in memory and only there (package
// progress); a restarted controller looks and reads once more and finds nothing to write.
//
// Start reading with Reconciler.Reconcile.
package controller
