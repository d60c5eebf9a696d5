// Package rollout looks at rollouts and steers them: `fleet rollout status` says how far a bundle or all of a
// GitRepo are, for people and, by its exit code, for pipelines; `fleet rollout pause` and `resume` stop them
// and let them go on.
//
// What counts is what the hub wrote into Bundle.status.rollout; nothing is computed anew here but sums. Pausing
// sets the API's own field spec.paused, and on a Bundle an annotation that keeps it from being set back by the
// next commit. docs/rollouts.md is the manual.
//
// Start reading with Command.
package rollout
