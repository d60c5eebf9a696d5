// Package resilience tests a whole fleet where things go wrong: members that are down, manifests an API
// server refuses, programs killed at any moment, a hub that restarts; and that a fleet where nothing
// happens writes nothing.
package resilience
