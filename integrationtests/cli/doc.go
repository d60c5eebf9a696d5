// Package cli tests the commands of `fleet` that talk to a hub or a member against a real API server with
// our definitions installed.
package cli
