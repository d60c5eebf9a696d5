// Package check holds tests about the source tree itself: which layer may import which, which packages
// stay free of the outside world, that every package says what it is for, and that the links and
// commands in the documents exist. `make verify` runs them.
package check
