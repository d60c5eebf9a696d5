// Package compact makes BundleDeployments small for a cache that holds all of a fleet: what a bundle's
// deployments have in common is held once, and what the hub never looks at is left out.
//
// It changes nothing that a decision or a status of the hub depends on. Objects that went through it share
// parts with others: they must be copied before they are changed, as all objects of a cache.
//
// Start reading with Deployments.
package compact
