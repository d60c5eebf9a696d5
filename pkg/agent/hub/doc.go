// Package hub is the agent's way to read from and report to the hub: the deployments of its
// cluster's namespace, whatever BundleDeployments carry them (pkg/merge), the contents they name (on the hub, or in a
// registry the hub gives access to), and the values and copies beside them. What is not there yet, or belongs to another
// version, is an error of class fault.Waiting. A status is written when it changed, and at most once a second.
//
// It needs, in that namespace: bundledeployments get, list, watch; their status get and patch; secrets
// and configmaps get; and contents get. It decides nothing.
//
// Start reading with Hub.Input and Hub.Report.
package hub
