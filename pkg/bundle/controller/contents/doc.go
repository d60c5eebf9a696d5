// Package contents stores the files of bundles, says whether they are there, and removes what nobody refers to any more,
// on the hub and in registries (docs/design/contents.md).
//
// It promises that there is one Content for every different set of files, which is there before a deployment refers to
// it; that what deployments need and somebody takes away comes back when a Bundle still has it, and is said to be missing
// when none has; and that each member may read what its deployments refer to, with credentials that cannot write.
//
// It never removes what a Bundle or a deployment may refer to: it asks the API server before, names the version it looked
// at, and does nothing while a cache has not shown any deployment. It changes neither Bundles nor deployments, and it does
// not write files that a Bundle does not hold: who made the bundle does.
//
// Start reading with Store; collector.go and artifacts.go are the two controllers that remove.
package contents
