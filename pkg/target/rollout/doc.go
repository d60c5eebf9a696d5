// Package rollout decides which clusters may take a bundle's new content now: how many new deployments
// are made in one pass, which partition changes before which, how many clusters may be unavailable or on
// their way, and when so much has failed that nothing else may change.
//
// The rules are upstream's, but for these: clusters in no manual partition form a last one instead of
// never changing, and clusters that cannot make progress (paused, outside of their schedule, offline within
// a budget) do not hold up the others. Types of rollouts, deadlines and limits of failures are additions.
//
// It looks at flags and times of facts; it builds no deployment, keeps no state between passes and reads no
// clock: the same facts at the same time give the same decision, so a restarted controller goes on where the
// last one was. Start reading with Decide; docs/rollouts.md is the manual.
package rollout
