// Package session is what every command of `fleet` is given: streams, the few settings that come from
// the environment, the flags that say which cluster is meant, and errors with an exit code.
//
// A connection is made when a command first asks for one. Commands that work on files never ask, so they
// need no kubeconfig and no home directory. The package reads no environment: cmd/fleet passes it in.
//
// Start reading with Session.
package session
