// Package process runs programs as children of this process whose lives are tied to its own: they
// write to log files, can be killed and started again, are told apart from children that ended by
// themselves, and on Linux die with this process however it ends. It also reserves ports for them.
//
// It refuses to let this process's environment through, to restart anything by itself, and to
// guess whether a program is of use yet: that is its caller's to ask.
//
// Start reading at Parent and Process.
package process
