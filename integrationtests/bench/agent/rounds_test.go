package agent

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/integrationtests/bench/report"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/pair"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// What the agent is held to.
const (
	leastLimit  = 1.5 // seconds
	floorTimes  = 2.0
	driftLimit  = 1.0 // seconds
	createLimit = 4.0 // writes to the hub for each bundle
	changeLimit = 3.0
	idleLimit   = 0.01 // of a core
)

// step is one kind of what a round does, over all rounds.
type step struct {
	name string
	// objects is until a watch on the member has seen the last object, told until the hub was told.
	objects, told, floor []time.Duration
}

func measureRounds(b *testing.B) {
	p := start(b)
	create, change, remove := &step{name: "create"}, &step{name: "change"}, &step{name: "delete"}
	var drift, floorDrift []time.Duration
	writes := map[*step]float64{}
	for round := range size.rounds {
		l := load{name: fmt.Sprintf("round-%d", round), bundles: 20, objects: 10}
		namespace := kubetest.Namespace(b, p.Member)
		first, second := l.store(b, p, "first"), l.store(b, p, "second")

		create.floor = append(create.floor, l.floor(b, p.Member.Clients(), namespace, "first", 1))
		writes[create] = max(writes[create], hubWrites(b, p, func() { create.run(b, p, l, first, "first", p.Create) }))
		change.floor = append(change.floor, l.floor(b, p.Member.Clients(), namespace, "second", 2))
		writes[change] = max(writes[change], hubWrites(b, p, func() { change.run(b, p, l, second, "second", p.Change) }))
		restored, floor := l.drift(b, p, namespace)
		drift, floorDrift = append(drift, restored), append(floorDrift, floor)
		if round == 0 {
			addMemory(b, p, "20 bundles of 10 objects", memoryLimit)
			measureIdle(b, p)
		}
		remove.floor = append(remove.floor, create.floor[round])
		remove.remove(b, p, l, second)
	}
	for _, s := range []*step{create, change, remove} {
		s.add(b)
	}
	for s, limit := range map[*step]float64{create: createLimit, change: changeLimit} {
		sheet.Add(report.Figure{
			Chapter: "agent: writes to the hub for each bundle", Name: s.name + ", most of all rounds",
			Value: writes[s], Floor: new(1.0), Limit: &limit,
		})
		if writes[s] > limit {
			b.Errorf("%s: %.2f writes to the hub for each bundle, want at most %.0f", s.name, writes[s], limit)
		}
	}
	median, longest := report.Spread(drift)
	floor, _ := report.Spread(floorDrift)
	const chapter = "agent: drift on 20 objects of 20 bundles"
	sheet.Add(
		report.Figure{Chapter: chapter, Name: "restored, median", Value: median, Unit: report.Seconds, Floor: &floor, Limit: new(driftLimit)},
		report.Figure{Chapter: chapter, Name: fmt.Sprintf("restored, longest of %d", len(drift)), Value: longest, Unit: report.Seconds, Floor: &floor, Limit: new(driftLimit)},
	)
	addMemory(b, p, fmt.Sprintf("after %d rounds", size.rounds), memoryLimit)
	b.ReportMetric(0, "ns/op")
}

// run writes all deployments and waits for what comes of it.
func (s *step) run(t testing.TB, p *pair.Pair, l load, deployments []*fleet.BundleDeployment, value string, write func(context.Context, *fleet.BundleDeployment) error) {
	t.Helper()
	objects, told := l.values(t, p, l.total(), value), settled(t, p, deployments)
	began := time.Now()
	each(t, l.bundles, atOnce, func(ctx context.Context, i int) error { return write(ctx, deployments[i]) })
	s.objects = append(s.objects, objects().Sub(began))
	s.told = append(s.told, told().Sub(began))
}

// remove deletes all deployments and waits until objects and release records are gone.
func (s *step) remove(t testing.TB, p *pair.Pair, l load, deployments []*fleet.BundleDeployment) {
	t.Helper()
	objects, records := l.gone(t, p, l.total()), recordsGone(t, p, 2*l.bundles)
	began := time.Now()
	each(t, l.bundles, atOnce, func(ctx context.Context, i int) error { return p.Delete(ctx, deployments[i].Name) })
	s.objects = append(s.objects, objects().Sub(began))
	s.told = append(s.told, records().Sub(began))
}

func (s *step) add(b *testing.B) {
	b.Helper()
	const chapter = "agent: 20 bundles of 10 ConfigMaps"
	floor, _ := report.Spread(s.floor)
	limit := max(floorTimes*floor, leastLimit)
	last := "the hub is told"
	if s.name == "delete" {
		last = "the records are gone"
	}
	objects, _ := report.Spread(s.objects)
	told, longest := report.Spread(s.told)
	sheet.Add(
		report.Figure{Chapter: chapter, Name: s.name + ": objects, median", Value: objects, Unit: report.Seconds, Floor: &floor, Limit: &limit},
		report.Figure{Chapter: chapter, Name: s.name + ": " + last + ", median", Value: told, Unit: report.Seconds, Floor: &floor, Limit: &limit},
		report.Figure{Chapter: chapter, Name: fmt.Sprintf("%s: %s, longest of %d", s.name, last, len(s.told)), Value: longest, Unit: report.Seconds, Floor: &floor},
	)
	b.ReportMetric(told, "s-"+s.name)
	b.ReportMetric(told/floor, "×floor-"+s.name)
}

// drift changes an object of every bundle and waits until all are as they were. The floor is the same
// patches, and applies that take them back.
func (l load) drift(t testing.TB, p *pair.Pair, namespace string) (restored, floor time.Duration) {
	t.Helper()
	maps := p.Member.Clients().CoreV1()
	spoil := func(in string) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			_, err := maps.ConfigMaps(in).Patch(ctx, l.object(i, 0), types.MergePatchType, []byte(`{"data":{"value":"spoilt"}}`), metav1.PatchOptions{FieldManager: "somebody"})
			return err
		}
	}
	began := time.Now()
	each(t, l.bundles, atOnce, spoil(namespace))
	once := load{name: l.name, bundles: l.bundles, objects: 1}
	once.floor(t, p.Member.Clients(), namespace, "third", 0)
	floor = time.Since(began)

	spoilt := l.values(t, p, l.bundles, "spoilt")
	began = time.Now()
	each(t, l.bundles, atOnce, spoil(p.Target))
	spoilt()
	back := l.values(t, p, l.total(), "second")
	return back().Sub(began), floor
}

// quietTime is longer than any status is held back.
const quietTime = 2500 * time.Millisecond

// hubWrites returns how many requests for a change, leases not counted, the agent sends to the hub for each
// of twenty bundles while something is done and until it has nothing more to say.
func hubWrites(t testing.TB, p *pair.Pair, do func()) float64 {
	t.Helper()
	before := agentWrites(t, p)
	do()
	pause(t, quietTime)
	return float64(agentWrites(t, p)-before) / 20
}

func agentWrites(t testing.TB, p *pair.Pair) int {
	t.Helper()
	all, err := p.Hub.Writes()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, write := range all {
		if write.Namespace == p.Namespace && write.Resource != "leases" && isAgent(write.UserAgent) {
			count++
		}
	}
	return count
}

// measureIdle watches an agent that has nothing to do.
func measureIdle(b *testing.B, p *pair.Pair) {
	b.Helper()
	pause(b, quietTime)
	writes := agentWrites(b, p)
	before, err := p.Agent.ProcessorTime()
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	pause(b, size.idle)
	used, err := p.Agent.ProcessorTime()
	if err != nil {
		b.Fatal(err)
	}
	share := (used - before).Seconds() / time.Since(began).Seconds()
	chapter := fmt.Sprintf("agent: idle for %s", size.idle)
	sheet.Add(
		report.Figure{Chapter: chapter, Name: "part of a core", Value: share, Limit: new(idleLimit)},
		report.Figure{Chapter: chapter, Name: "writes to the hub, leases not counted", Value: float64(agentWrites(b, p) - writes), Limit: new(0.0)},
	)
	if agentWrites(b, p) != writes {
		b.Errorf("an idle agent wrote to the hub")
	}
}
