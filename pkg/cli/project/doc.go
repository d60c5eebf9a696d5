// Package project is what the commands for authors share: a repository's folder is read as a GitRepo would
// be, its bundles are targeted at clusters from a file or the hub, and rendered for each of them. Bundles
// with the same content and options are rendered once, however many clusters have them.
//
// It prints nothing and decides nothing: bundle, target and render do. Start reading with Flags and Load.
package project
