// Package depends decides whether a deployment may go ahead: whether the deployments of the same cluster
// that its dependsOn names are in the states it accepts. Waiting is not a failure, and is told with the
// names and states waited for; a circle never ends and is an error that names it.
//
// It is pure. Start reading with Check.
package depends
