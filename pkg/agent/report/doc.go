// Package report makes the status of a BundleDeployment out of what an agent has found: which release is
// there, what each of its objects looks like, and what failed. It is pure, and deterministic: the same
// facts give the same status, so that nothing is written when nothing has changed.
//
// Start reading with Status.
package report
