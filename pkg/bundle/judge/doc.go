// Package judge renders a bundle away from its cluster and says whether a failure counts: one that the cluster
// could turn into a success does not. Why that is so, package validation says, which asks.
//
// Templates are foreign code, so that only package apart should call Judge in a process that does anything else. It asks no
// cluster and no network. Start reading with Judge.
package judge
