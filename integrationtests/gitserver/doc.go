// Package gitserver runs a real git server on 127.0.0.1 for tests and the demo: smart HTTP and HTTPS
// through git's own http-backend, and SSH in front of git's own upload-pack. Repositories are made
// and changed with the system's git, isolated from the configuration of whoever runs it.
//
// The server counts what clients ask for, can demand credentials, and can be told to answer with an
// error or not at all. It never listens beyond loopback, and Close ends everything it started.
//
// Start reading at Start; repo.go has what can be done with a repository. Tests use the subpackage
// gitservertest.
package gitserver
