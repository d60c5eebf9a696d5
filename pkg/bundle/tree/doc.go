// Package tree reads files of a repository and never anything else. Symbolic links are followed inside
// the repository, by this package and not by the file system below it, so a link that leaves the
// repository is an error whatever the file system would do. Sizes are checked before a file is read.
//
// Start reading with New and Tree.Walk.
package tree
