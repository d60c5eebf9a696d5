// Package worktree looks at the git checkout a command runs in: which commit it is at, and what the tree
// of another commit holds. It starts no git, reads no configuration outside the checkout, and fetches nothing.
//
// Start reading with Head and At.
package worktree
