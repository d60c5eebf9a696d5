// Package rollout decides which clusters may take a bundle's new content now: how many new deployments
// are made in one pass, which partition changes before which, and how many clusters may be unavailable.
//
// The rules are upstream's, but for these: clusters in no manual partition form a last one instead of
// never changing, and clusters that cannot make progress (paused, outside of their schedule, offline within
// a budget) do not hold up the others.
//
// It looks at counts and flags only; it builds no deployment and reads no clock. Start reading with Decide.
package rollout
