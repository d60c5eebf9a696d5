// Package cause leads from what a person looks at (a GitRepo, HelmOp, Bundle, BundleDeployment or Cluster) to
// the first thing that is wrong, and shows the whole as a tree, worst first. It says the same to the command
// line, to conditions and to a dashboard, because it is the one place that decides what hides behind what:
//
//   - a source that cannot be read stands before its bundles, and a bundle's own problem before its clusters;
//   - a cluster that is not heard from stands before whatever its last report says;
//   - a deployment that waits for another one leads to that one;
//   - a cluster that is held back from what a bundle wants there has that as its cause, whatever its deployment
//     says of what it runs;
//   - only then the objects count.
//
// Conditions are written by package parent, in the forms that dashboards read, from the same roll-ups, and name
// first what a chain leads to; a test holds the two together. They do not know which clusters are not heard
// from: that would write every bundle's status when a cluster goes away.
//
// It reads nothing and judges no deployment itself: states and their messages are package status'.
//
// Start reading with New and Graph.Why.
package cause
