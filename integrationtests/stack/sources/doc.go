// Package sources serves what a fleet deploys from, on 127.0.0.1: a git repository with the examples, and
// the Helm repository one of them refers to.
//
// It refuses to change the examples' own folder: the Helm repository's address is put into a copy.
//
// Start reading at Serve.
package sources
