// Package values keeps the Secrets with Helm values: it reads those of Bundles, and writes those of deployments.
//
// It promises that a pass for a status event reads no Secret, since the newest values of each bundle are kept; and that
// values which a deployment needs and somebody takes away are noticed, although only their names are cached.
//
// A Secret of a deployment's name that is of another type is somebody else's: it is not deleted. An empty
// read takes no values away, and the values of Bundles are not written here: whoever makes the bundle does that.
//
// Start reading with Store.
package values
