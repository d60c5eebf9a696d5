// Package values keeps the Secrets with Helm values: it reads those of Bundles, and writes those of deployments.
//
// It promises that a pass for a status event reads no Secret, since the newest values of each bundle are kept; that
// values which a deployment needs and somebody takes away are noticed, although only their names are cached; and that
// no error holds a value.
//
// It deletes and replaces by type: a Secret of a deployment's name that is of another type is somebody else's and stays.
// An empty read takes no values away, and it does not write the values of Bundles: whoever makes the bundle does.
//
// Start reading with Store.
package values
