// Package pace says when something is tried again: a deployment that failed, and the correction of objects
// that drift again and again.
//
// It is pure: times are given. It refuses to wait.
//
// Start reading with Turns.Due and Attempts.May.
package pace
