// Package version says which build this is.
package version

// Version is set by the linker; "dev" in builds without it.
var Version = "dev"

// Protocol is the version of the exchange between agent and hub that this build speaks.
const Protocol = 1
