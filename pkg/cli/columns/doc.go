// Package columns prints objects in columns of the reader's choice, as kubectl's -o custom-columns does:
// "NAME:.metadata.name,BRANCH:.spec.branch", or a file with a line of headings and a line of paths.
//
// It is here because kubectl's own comes with all of `kubectl get`, whose start takes longer than that of
// the rest of the program.
//
// Start reading with Parse.
package columns
