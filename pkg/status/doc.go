// Package status has the words in which hub, agents and command line say how deployments do, and which people and
// Rancher's dashboard read: the state of one BundleDeployment with the message that explains it, summaries that count
// states, conditions, and texts cut to the length that is stored.
//
// What is built on them are packages of their own: tally (all deployments counted in memory), parent (the statuses of
// Bundles, GitRepos, HelmOps, Clusters and ClusterGroups), cause (what is wrong first), compact, feed and gauges.
//
// Times are given by the caller. It refuses to keep count of deployments and to decide what the status of anything
// above them says, and it reads and writes no object. Start reading with Of, Message and Set.
package status
