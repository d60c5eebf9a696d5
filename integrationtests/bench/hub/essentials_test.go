package hub

import (
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
)

// phaseCounts returns what was written in a phase, leases aside, by verb and resource.
func (r *run) phaseCounts(what func() time.Time) map[string]int {
	r.t.Helper()
	before := r.read()
	r.awaitExact(what())
	r.settle()
	return byResource(r.read().writes.Since(before.writes).Only(writes.NotLeases))
}

// expect fails the test when something was not written as often as it must be. What the API server gave up on may have
// been carried out all the same.
func (r *run) expect(phase string, counts map[string]int, what string, least, most int) {
	r.t.Helper()
	if got, unknown := counts[what], counts[what+unknownOutcome]; got+unknown < least || got > most {
		r.t.Errorf("%s: %s %d times, and perhaps %d times more, want %d to %d", phase, what, got, unknown, least, most)
	}
}

// fanOutAndCount makes all bundles while agents answer at once, then changes them.
func (r *run) fanOutAndCount() {
	r.t.Helper()
	before := r.agents.reports()
	created := r.phaseCounts(func() time.Time { r.fanOut(); return r.everythingReports() })
	r.expect("fan-out", created, "create bundledeployments", r.pairs(), r.pairs())
	r.expect("fan-out", created, "patch bundledeployments", 0, 0)
	// Agents ask a busy API server again; nobody else writes what they report.
	r.expect("fan-out", created, "patch bundledeployments/status", r.pairs(), r.agents.reports()-before)
	changed := r.phaseCounts(r.change)
	r.expect("change", changed, "patch bundledeployments", r.pairs(), r.pairs())
	r.expect("change", changed, "create bundledeployments", 0, 0)
	r.expect("change", changed, "delete bundledeployments", 0, 0)
	// Each Cluster is told of a fan-out once. A change leaves its numbers as they were. Where a busy machine stands still in
	// the midst of it, some are told once more; nobody is told of each of its events.
	r.expect("fan-out", created, "patch clusters/status", r.size.clusters, 3*r.size.clusters)
	r.expect("change", changed, "patch clusters/status", 0, 2*r.size.clusters)
	r.expect("fan-out", created, "patch bundles/status", r.size.bundles, r.pairs()/10)
	r.expect("change", changed, "patch bundles/status", r.size.bundles, r.pairs()/10)
}

// labelChangeAndCount moves a cluster from one ring to the other: one pair goes, one comes.
func (r *run) labelChangeAndCount() {
	r.t.Helper()
	counts := r.phaseCounts(r.labelChanges)
	r.expect("label change", counts, "create bundledeployments", 1, 1)
	r.expect("label change", counts, "delete bundledeployments", 1, 1)
	r.expect("label change", counts, "patch bundledeployments", 0, 0)
	// Both bundles and both groups are told once, or twice where the new pair reports a moment later.
	r.expect("label change", counts, "patch bundles/status", 2, 4)
	r.expect("label change", counts, "patch clustergroups/status", 2, 4)
}

// idleAndCount watches a fleet in which nothing happens but heartbeats, which cause no reconcile.
func (r *run) idleAndCount() {
	r.t.Helper()
	r.awaitSlowly("files that nobody needs are gone", time.Second, r.stack.Tidy)
	r.settle()
	before := r.read()
	r.idle()
	after := r.read()
	for what, count := range byResource(after.writes.Since(before.writes).Only(writes.NotLeases)) {
		r.t.Errorf("idle: %s %d times", what, count)
	}
	for controller, count := range after.reconciles {
		if count > before.reconciles[controller] {
			r.t.Errorf("idle: %s reconciled %v times", controller, count-before.reconciles[controller])
		}
	}
}
