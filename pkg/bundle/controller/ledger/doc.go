// Package ledger says whether a cache may be planned on: it remembers what the last pass over each bundle wrote, and
// doubts caches that do not show it.
//
// It promises that no pass plans on what was before the last one, in this process or in the one that worked on the bundle
// before: a rollout would go beyond its limits, and what exists would be created again. A cache that is late is waited
// for; one that is late for long is compared with the API server, and listed anew when that has what it lacks.
//
// It writes nothing, and holds nobody back for good: what somebody else has deleted is not waited for.
//
// Start reading with Ledger; doubts.go says when a cache is believed, catchup.go what comes from another process.
package ledger
