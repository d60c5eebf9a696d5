// Package wire speaks git's protocol, version 0, to one remote repository: it lists references and
// fetches packs over smart HTTP and SSH.
//
// go-git's own transports are not used because they have no deadline on an SSH handshake or a silent
// server, read the SSH configuration of the user they run as, and keep whatever a server sends in
// memory. Here every read has a deadline, answers are bounded, redirects lose credentials when they
// leave the host, and host keys are checked strictly.
//
// Foreign errors end here: what comes out is a Failure with a class and reason of pkg/fault, in words
// that say what failed, where and what to do, without credentials.
//
// Start reading at Remote.
package wire
