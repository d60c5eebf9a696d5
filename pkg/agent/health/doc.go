// Package health tells how one object on a member does: ready or not, with the words of Rancher's
// dashboard. The decision is that of Kubernetes' own conventions (kstatus: observedGeneration,
// conditions, the known built-in kinds); the words and the error flag come from wrangler's summary, so
// that people read what they are used to.
//
// It is pure and knows no cluster.
//
// Start reading with Of.
package health
