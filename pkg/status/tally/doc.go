// Package tally counts deployments: the one roll-up of many into a Bundle, GitRepo, HelmOp or Cluster. Of each it keeps
// a small record, and believes no more of a report than fits, whatever an agent sends.
//
// The roll-up (Index) is arithmetic in memory: each change of a deployment changes counts by constant work,
// and after the last change the counts are those of a fresh count. Lists are capped, sorted and stable, so that a
// status made from them neither grows with the fleet nor changes without cause.
//
// It refuses to say how a status reads (package parent does) and when somebody is told of new numbers (package feed
// does). It knows no clock, and reads and writes no object. Start reading with Trim and Index; Bound is for caches.
package tally
