// Package outage tests that the hub loses nothing: behind a fault proxy that answers errors, empty lists and
// expired watches, with cold caches, and when one of several replicas dies or is paused in the middle of its
// work.
package outage
