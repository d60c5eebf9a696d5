// Package sources reads what GitRepos name: the commit they stand for, and the Bundles that a commit has, with the
// credentials of their Secrets for repositories, charts and registries.
//
// It promises that a Bundle knows the GitRepo it comes from, and that of the Bundles of a large commit only a part
// is in memory: the others are read once more when they have to be written.
//
// It writes nothing, and remembers nothing: which commit is read, when, and what becomes of it is its user's to
// decide. A Secret that a GitRepo names and that does not exist is an error, never an anonymous look.
//
// Start reading with Opener; Reading is a commit that was opened.
package sources
