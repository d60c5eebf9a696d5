// Package access is the agent's way to its own cluster: as itself, and as the service accounts of bundles, as
// which it reads and writes everything of theirs. It knows what the cluster's API server offers.
//
// It hands out no rights: an account that may not do something is refused by the API server. An account that is named
// and does not exist is an error of class fault.Stalled.
//
// Start reading with Member.As and Identity.
package access
