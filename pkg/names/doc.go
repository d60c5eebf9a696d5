// Package names makes the names and identifiers that hub, agent and command line agree on, and takes
// them apart again. The rules are upstream's, so that objects made by either engine are found by the
// other. It refuses to know about anything but strings.
//
// Start reading with Bundle, ClusterNamespace and HelmRelease.
package names
