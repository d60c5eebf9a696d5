// Package version says which build this is.
package version

// Version is set by the linker; "dev" in builds without it.
var Version = "dev"

// Protocol is the version of the exchange between agent and hub that this build speaks: since 2 its agent understands
// BundleDeployments with parts (merge.Protocol).
const Protocol = 2
