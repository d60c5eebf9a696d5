// Package carrier writes deployments of the hub into the objects that carry them: one of their own, or one that
// they share (pkg/merge). Changes of several deployments in one object that come within a moment are one write.
//
// A deployment is never taken out of an object before it is in another one in which the agent has
// reported, unless it is to be deleted. The package decides nothing else; where a deployment belongs its callers say.
//
// Start reading at Writer.
package carrier
