// Package pace says when something is tried again: a deployment that failed, and the correction of an object
// that drifts again and again.
//
// It is pure: times are given. It refuses to wait.
//
// Start reading with Corrections and Backoff.
package pace
