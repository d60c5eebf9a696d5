// Package cause leads from what a person looks at (a GitRepo, HelmOp, Bundle, BundleDeployment or Cluster) to
// the first thing that is wrong, and shows the whole as a tree, worst first. It says the same to the command
// line, to conditions and to a dashboard, because it is the one place that decides what hides behind what:
//
//   - a source that cannot be read stands before its bundles, and a bundle's own problem before its clusters;
//   - a cluster that is not heard from stands before whatever its last report says;
//   - a deployment that waits for another one leads to that one;
//   - only then the objects count.
//
// It reads nothing and judges no deployment itself: states and their messages are package status'.
//
// Start reading with New and Graph.Why.
package cause
