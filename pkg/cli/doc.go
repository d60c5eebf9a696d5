// Package cli is the program `fleet`, for people and pipelines: its commands, the one way in which all of
// them fail, and the exit codes. Data goes to standard output, everything said beside it to standard error.
//
// The commands are in packages of their own, by purpose: apply (folders to Bundles), preview (target,
// deploy, test), author (render, explain, lint, diff, schema) and inspect (get, status, why, version).
// They hold flags and printing; what is decided is decided by the packages the hub and the agent use.
//
// Start reading with Run.
package cli
