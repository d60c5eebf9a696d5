// Package depends reads dependsOn: which bundles a reference means, in which order bundles are to be written, and whether a
// deployment may go ahead, that is whether the deployments of the same cluster that its dependsOn means are in the states
// it accepts. Waiting is not a failure, and is told with the names and states waited for; a circle never ends and is an error
// that names it.
//
// It is pure. Start reading with Means and Check.
package depends
