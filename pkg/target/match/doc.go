// Package match decides which clusters a bundle reaches, and which of its targets give the options
// there. It also answers single selector blocks, as rollout partitions and schedules have them.
//
// The answer depends on its input alone: lists keep their order, groups are tried by name. It merges no
// options and knows nothing of deployments that exist.
//
// Start reading with Compile and Matcher.Match; Matcher.Explain says why.
package match
