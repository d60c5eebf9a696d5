// Package merge knows how several deployments are carried by one BundleDeployment: which ones an object
// carries, what is shown of one that two objects carry, and where a new one goes. docs/design/merge.md
// says why.
//
// It is pure: view reads and watches through it, carrier and the agent write.
//
// Start reading with Explode and Combine.
package merge
