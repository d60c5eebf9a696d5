// Package concede leaves to the member what is the member's in an object that is about to be written: the fields
// that a bundle says to ignore, and the number of replicas that an autoscaler of the member manages. Both are sent
// with their live values, so that the write does not change them.
//
// It writes nothing, and refuses fields that it cannot read with an error of class fault.Stalled. That whole
// objects are left alone is not its business but pkg/agent/apply's.
//
// Start reading with Fields and Replicas.
package concede
