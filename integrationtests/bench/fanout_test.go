package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/bench/report"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
)

// fanOutResult is what a new GitRepo, and then a change of one of its bundles, took.
type fanOutResult struct {
	bundles, members int
	// Until all objects are on all members, and until the hub says that all is ready.
	objects, ready time.Duration
	// floor is how long the members take for the bare objects.
	floor time.Duration
	// The hub's writes for the new GitRepo, and for the change.
	created, changed []writes.Write
	// bundle names the Bundle that was changed.
	bundle string
}

// objectsPerBundle of a fan-out.
const objectsPerBundle = 3

// fanOut deploys new bundles to all members, then changes one of them.
func (w *world) fanOut(t testing.TB, bundles int) *fanOutResult {
	t.Helper()
	repository := generated{name: "fanout", bundles: bundles, objects: objectsPerBundle}
	git, err := w.sources.Git.Repo(fmt.Sprintf("fanout-%d", time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	commit, err := git.Commit(repository.all("first"), "All bundles")
	if err != nil {
		t.Fatal(err)
	}
	result := &fanOutResult{bundles: bundles, members: len(w.Members), bundle: "fanout-app-000"}
	result.floor = w.applyFloor(t, repository.floor(fmt.Sprint(time.Now().UnixNano())))

	w.settle(t)
	before := len(ours(t, w.Hub))
	arrived := w.sight(t, repository.sought(bundles, "first"))
	began := time.Now()
	follower := w.follow(t, "fanout", git, never)
	result.objects = arrived().Sub(began)
	follower.awaitReady(t, commit)
	result.ready = time.Since(began)
	w.settle(t)
	all := ours(t, w.Hub)
	result.created = all[before:]

	arrived = w.sight(t, repository.sought(1, "second"))
	commit = follower.commit(t, repository.one(0, "second"))
	follower.announce(t, commit)
	arrived()
	follower.awaitReady(t, commit)
	w.settle(t)
	result.changed = ours(t, w.Hub)[len(all):]
	return result
}

// pairs is how many deployments there are.
func (r *fanOutResult) pairs() int { return r.bundles * r.members }

// The kinds of writes that a fan-out needs, and the only ones a BundleDeployment should see.
var (
	createDeployment = kind{theController, "create", "bundledeployments"}
	patchDeployment  = kind{theController, "patch", "bundledeployments"}
	reportDeployment = kind{theAgents, "patch", "bundledeployments/status"}
)

// leastToCreate and leastToChange are the fewest writes by which the hub can do it: every object once, and
// every status that becomes another one once. Files that nobody needs any more go later, on their own.
func (r *fanOutResult) leastToCreate() tally {
	return tally{
		createDeployment:                            r.pairs(),
		reportDeployment:                            r.pairs(),
		{theController, "create", "bundles"}:        r.bundles,
		{theController, "create", "contents"}:       r.bundles,
		{theController, "patch", "bundles/status"}:  r.bundles,
		{theController, "patch", "clusters/status"}: r.members,
		{theController, "patch", "gitrepos"}:        1, // the finalizer
		{theController, "patch", "gitrepos/status"}: 1,
		{theController, "create", "events"}:         1,
	}
}

func (r *fanOutResult) leastToChange() tally {
	return tally{
		patchDeployment:                             r.members,
		reportDeployment:                            r.members,
		{theController, "update", "bundles"}:        1,
		{theController, "create", "contents"}:       1,
		{theController, "patch", "bundles/status"}:  1,
		{theController, "patch", "gitrepos/status"}: 2, // the announcement and the commit
		{theController, "create", "events"}:         1,
	}
}

// check says what a fan-out has too much or too little of.
func (r *fanOutResult) check() []string {
	var faults []string
	// What is refused is asked for again, and what an API server gave up on may have been carried out all the same.
	created, changed := tallyOf(only(r.created, writes.CarriedOut)), tallyOf(only(r.changed, writes.CarriedOut))
	unknown := tallyOf(only(slices.Concat(r.created, r.changed), writes.OutcomeUnknown))
	expect := func(phase string, counts tally, what kind, want int) {
		if got := counts[what]; got > want || got+unknown[what] < want {
			faults = append(faults, fmt.Sprintf("%s: %d times %s, want %d", phase, got, what, want))
		}
	}
	expect("new GitRepo", created, createDeployment, r.pairs())
	expect("new GitRepo", created, patchDeployment, 0)
	expect("change", changed, createDeployment, 0)
	expect("change", changed, patchDeployment, r.members)
	for _, phase := range []struct {
		name   string
		counts tally
		pairs  int
	}{{"new GitRepo", created, r.pairs()}, {"change", changed, r.members}} {
		if got := phase.counts[reportDeployment]; got+unknown[reportDeployment] < phase.pairs || got > maxReports*phase.pairs {
			faults = append(faults, fmt.Sprintf("%s: agents report %d times on %d deployments", phase.name, got, phase.pairs))
		}
	}
	for _, write := range r.changed {
		if strings.HasPrefix(write.Resource, "bundle") && write.Name != r.bundle {
			faults = append(faults, fmt.Sprintf("change of %s: %s", r.bundle, write))
		}
	}
	return faults
}

// maxReports is how often an agent may write one status for one change: that it is at work, that it is
// applied, that it is ready.
const maxReports = 3

// add puts the figures on the sheet.
func (r *fanOutResult) add(b *testing.B) {
	const chapter = "fan-out"
	floor := new(r.floor.Seconds())
	what := fmt.Sprintf("%d bundles of %d objects on %d members", r.bundles, objectsPerBundle, r.members)
	sheet.Add(
		report.Figure{Chapter: chapter, Name: what + ": all objects there", Value: r.objects.Seconds(), Unit: report.Seconds, Floor: floor},
		report.Figure{Chapter: chapter, Name: what + ": the hub says ready", Value: r.ready.Seconds(), Unit: report.Seconds, Floor: floor},
	)
	created := tallyOf(r.created)
	addWrites("hub writes for a new GitRepo", r.created, r.leastToCreate(), r.pairs())
	addWrites("hub writes for a change of one bundle", r.changed, r.leastToChange(), r.members)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(r.objects.Seconds(), "s")
	b.ReportMetric(float64(created[createDeployment]), "creates")
	b.ReportMetric(float64(created.total())/float64(r.pairs()), "writes/pair")
	for _, fault := range r.check() {
		b.Error(fault)
	}
}

func addWrites(chapter string, list []writes.Write, least tally, pairs int) {
	counts := tallyOf(list)
	for _, what := range kinds(counts, least) {
		figure := report.Figure{Chapter: chapter, Name: what.String(), Value: float64(counts[what]), Floor: new(float64(least[what]))}
		if what == createDeployment || what == patchDeployment {
			figure.Limit = figure.Floor
		}
		sheet.Add(figure)
	}
	refused := 0
	for _, write := range list {
		if !writes.CarriedOut(write.Request) {
			refused++
		}
	}
	total, floor := float64(counts.total()), float64(least.total())
	sheet.Add(
		report.Figure{Chapter: chapter, Name: "all", Value: total, Floor: new(floor)},
		report.Figure{Chapter: chapter, Name: "of them refused", Value: float64(refused), Floor: new(0.0)},
		report.Figure{Chapter: chapter, Name: "agents' statuses for each pair", Value: float64(counts[reportDeployment]) / float64(pairs), Floor: new(1.0)},
		report.Figure{Chapter: chapter, Name: "all for each pair", Value: total / float64(pairs), Floor: new(floor / float64(pairs))},
	)
}

// A small fan-out causes the writes it must and no more.
func TestFanOut(t *testing.T) {
	for _, fault := range getWorld(t).fanOut(t, 3).check() {
		t.Error(fault)
	}
}

// What check is there to find, it finds.
func TestFanOutCheck(t *testing.T) {
	write := func(k kind, name string) writes.Write {
		user := "system:serviceaccount:" + stack.SystemNamespace + ":fleet-controller"
		if k.who == theAgents {
			user = "system:fleet:cluster-a:b"
		}
		resource, subresource, _ := strings.Cut(k.what, "/")
		return writes.Write{
			Request: writes.Request{Verb: k.verb, Group: "fleet.cattle.io", Resource: resource, Subresource: subresource, Code: 200},
			User:    user, Name: name,
		}
	}
	times := func(n int, w writes.Write) []writes.Write { return slices.Repeat([]writes.Write{w}, n) }
	for name, test := range map[string]struct {
		spoil func(r *fanOutResult)
		want  string
	}{
		"as it must be": {func(*fanOutResult) {}, ""},
		"one create too many": {func(r *fanOutResult) { r.created = append(r.created, write(createDeployment, "two")) },
			"new GitRepo: 5 times controller: create bundledeployments, want 4"},
		"created in two writes": {func(r *fanOutResult) { r.created = append(r.created, write(patchDeployment, "two")) },
			"new GitRepo: 1 times controller: patch bundledeployments, want 0"},
		"changed on one member only": {func(r *fanOutResult) { r.changed = r.changed[1:] },
			"change: 1 times controller: patch bundledeployments, want 2"},
		"agents chatter": {func(r *fanOutResult) { r.changed = append(r.changed, times(5, write(reportDeployment, "one"))...) },
			"change: agents report 7 times on 2 deployments"},
		"agents are mute": {func(r *fanOutResult) { r.created = r.created[:4] },
			"new GitRepo: agents report 0 times on 4 deployments"},
		"an unchanged bundle is written": {
			func(r *fanOutResult) {
				r.changed = append(r.changed, write(kind{theController, "patch", "bundles/status"}, "two"))
			},
			"change of one: system:serviceaccount:cattle-fleet-system:fleet-controller: patch fleet.cattle.io/bundles/status 200 /two"},
	} {
		t.Run(name, func(t *testing.T) {
			result := &fanOutResult{
				bundles: 2, members: 2, bundle: "one",
				created: slices.Concat(times(4, write(createDeployment, "one")), times(4, write(reportDeployment, "one"))),
				changed: slices.Concat(times(2, write(patchDeployment, "one")), times(2, write(reportDeployment, "one"))),
			}
			test.spoil(result)
			if got := strings.Join(result.check(), "; "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
