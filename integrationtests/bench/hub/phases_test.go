package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/bench/report"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	// everywhere starts the names of bundles that go to every cluster.
	everywhere       = "app-"
	objectsPerBundle = 3
	// What the project holds itself to.
	floorLimit  = 1.5
	pairLimit   = 1.05
	rollupLimit = 0.05
	exactWithin = 2 * time.Second
	memoryLimit = 700.0
)

// run is one fleet from its first cluster to its last deletion.
type run struct {
	t       testing.TB
	size    settings
	stack   *stack.Stack
	client  client.Client
	members []*member
	agents  *agents
	floor   *floor
	// shown is what the API server has of bundles, clusters and groups.
	shown client.Reader

	// background are the heartbeats, which go on while beating does.
	background sync.WaitGroup
	beating    context.Context
}

func newRun(t testing.TB, size settings) *run {
	t.Helper()
	r := &run{t: t, size: size, stack: shared.Get(t)}
	config := r.stack.Hub.Admin().Config
	config.QPS = -1
	var err error
	if r.client, err = client.New(config, client.Options{Scheme: r.stack.Client.Scheme()}); err != nil {
		t.Fatal(err)
	}
	workspace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stack.Workspace}}
	if err := client.IgnoreAlreadyExists(r.client.Create(t.Context(), workspace)); err != nil {
		t.Fatal(err)
	}
	for i := range size.clusters {
		r.members = append(r.members, newMember(i))
	}
	r.agents = newAgents(t, r.stack, r.client, config, func(deployment *fleet.BundleDeployment) bool {
		return strings.HasPrefix(deployment.Name, "ring-")
	})
	r.shown = newShown(t, config, r.client.Scheme())
	r.floor = newFloor(t, r.client, config, r.members, size.bundles)
	var stop context.CancelFunc
	r.beating, stop = context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); r.background.Wait() })
	return r
}

// victim is the cluster that dies.
func (r *run) victim() *member { return r.members[len(r.members)-1] }

func (r *run) pairs() int { return r.size.clusters * r.size.bundles }

func bundleName(i int) string { return fmt.Sprintf("%s%03d", everywhere, i) }

// bundlesPerRepo is how many bundles a repository has where they are merged.
const bundlesPerRepo = 5

// bundle is one that goes everywhere.
func (r *run) bundle(i int, version string) *fleet.Bundle {
	b := madeBundle(i, version)
	if r.size.merge != "" {
		b.Labels = map[string]string{fleet.RepoLabel: fmt.Sprintf("repo-%d", i/bundlesPerRepo)}
		b.Spec.Merge = &fleet.MergeOptions{Mode: fleet.MergeMode(r.size.merge)}
	}
	return b
}

func madeBundle(i int, version string) *fleet.Bundle {
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: stack.Workspace, Name: bundleName(i)}}
	b.Spec.DefaultNamespace = "apps"
	b.Spec.Targets = []fleet.BundleTarget{{ClusterTarget: fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}}}}
	for object := range objectsPerBundle {
		b.Spec.Resources = append(b.Spec.Resources, fleet.BundleResource{
			Name:    fmt.Sprintf("object-%d.yaml", object),
			Content: fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-%d}\ndata: {value: %q}\n", b.Name, object, version),
		})
	}
	return b
}

// all goes through every phase and puts the figures on the sheet.
func (r *run) all() {
	r.t.Helper()
	everything := scope{pairs: r.pairs(), rollups: r.size.clusters + r.size.bundles}
	r.victim().every = quickHeartbeat // where nobody dies, a busy machine has as much time for it as for the others
	r.awaitCollector()
	r.phase("join", scope{}, r.floor.join, func() time.Time { r.join(); return time.Now() })
	r.agents.hold()
	r.phase("fan-out", everything, r.floor.create, r.fanOut)
	r.phase("everything reports ready", everything, r.floor.report, r.everythingReports)
	if !r.skips("every bundle changes") {
		r.phase("every bundle changes", scope{pairs: r.pairs(), rollups: r.size.bundles}, r.floor.change, r.change)
	}
	r.ringsAppear()
	r.phase("one cluster's label changes", scope{}, nil, r.labelChanges)
	r.phase("a cluster dies", scope{}, nil, r.clusterDies)
	r.phase("a cluster returns", scope{}, nil, r.clusterReturns)
	r.phase("idle", scope{}, nil, r.idle)
	if r.skips("delete") {
		return // with the control plane all goes
	}
	r.phase("delete", scope{pairs: r.pairs(), rollups: r.size.clusters + rings}, r.floor.delete, r.deleteAll)
	r.clean()
}

// skips says that a phase was asked to be left out.
func (r *run) skips(phase string) bool {
	return slices.Contains(strings.Split(r.size.without, ","), phase)
}

// scope is what a phase is about, where it is about the whole fleet: pairs of bundle and cluster, and objects whose
// numbers are others after it, each of which cannot be told with less than one write.
type scope struct{ pairs, rollups int }

// essentials goes through those phases whose counts a test holds, and through an idle minute.
func (r *run) essentials() {
	r.t.Helper()
	r.join()
	r.fanOutAndCount()
	r.ringsAppear()
	r.labelChangeAndCount()
	r.idleAndCount()
	r.phaseCounts(r.deleteAll)
	r.clean()
}

// phase measures one phase. bare does the same writes bare, nil for none; what returns when its work was done, which
// may be before the roll-up has told of it.
func (r *run) phase(name string, about scope, bare func() time.Duration, what func() time.Time) {
	r.t.Helper()
	var floor time.Duration
	if bare != nil {
		floor = bare()
	}
	if err := stack.ResetPeak(r.stack.Controller.Pid()); err != nil {
		r.t.Fatal(err)
	}
	before := r.read()
	began := time.Now() // reading takes the API server's time, too
	done := what()
	exact := r.awaitExact(done)
	r.settle()
	after := r.read()
	added := after.writes.Since(before.writes)
	took := done.Sub(began)
	r.t.Logf("%s: %s (floor %s)", name, took.Round(time.Millisecond), floor.Round(time.Millisecond))
	r.addTimes(name, took, floor, exact)
	r.addWrites(name, about, added)
	r.addController(name, before, after)
}

func (r *run) addTimes(name string, took, floor, exact time.Duration) {
	figure := report.Figure{Chapter: name, Name: "time", Value: took.Seconds(), Unit: report.Seconds}
	if floor > 0 {
		figure.Floor = new(floor.Seconds())
		if name != "join" {
			figure.Limit = new(floorLimit * floor.Seconds())
		}
	}
	sheet.Add(figure, report.Figure{
		Chapter: name, Name: "until all statuses are exact, after the last event", Value: exact.Seconds(), Unit: report.Seconds, Limit: new(exactWithin.Seconds()),
	})
}

// rollups are the writes that tell of deployments.
var rollups = []string{"bundles/status", "clusters/status", "clustergroups/status", "gitrepos/status"}

func (r *run) addWrites(name string, about scope, added writes.Requests) {
	counts := byResource(added)
	perPair, rollup := 0, 0
	for what, count := range counts {
		resource := strings.Fields(what)[1]
		if resource == plural {
			perPair += count
		}
		if slices.Contains(rollups, resource) {
			rollup += count
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		if !strings.Contains(what, " leases") && counts[what] > 0 {
			sheet.Add(report.Figure{Chapter: name, Name: what, Value: float64(counts[what])})
		}
	}
	if about.pairs == 0 {
		return
	}
	each := func(count int) float64 { return float64(count) / float64(about.pairs) }
	writing := report.Figure{Chapter: name, Name: "hub's writes for each pair", Value: each(perPair), Limit: new(pairLimit)}
	telling := report.Figure{
		Chapter: name, Name: "roll-up's writes for each pair", Value: each(rollup), Floor: new(each(about.rollups)), Limit: new(rollupLimit),
	}
	sheet.Add(writing, telling)
}

func (r *run) addController(name string, before, after reading) {
	seconds := (after.processor - before.processor).Seconds()
	controller := after.memory["fleet-controller"]
	latency := after.latency.since(before.latency)
	sheet.Add(
		report.Figure{Chapter: name, Name: "controller's processor time", Value: seconds, Unit: report.Seconds},
		report.Figure{Chapter: name, Name: "controller's memory", Value: float64(controller.Resident) / 1e6, Unit: report.Megabytes},
		report.Figure{Chapter: name, Name: "controller's memory, peak", Value: float64(controller.Peak) / 1e6, Unit: report.Megabytes, Limit: new(memoryLimit)},
		report.Figure{Chapter: name, Name: "API server's memory", Value: float64(after.memory["hub/kube-apiserver"].Resident) / 1e6, Unit: report.Megabytes},
		report.Figure{Chapter: name, Name: "etcd's memory", Value: float64(after.memory["hub/etcd"].Resident) / 1e6, Unit: report.Megabytes},
		report.Figure{Chapter: name, Name: "etcd's file grew by", Value: (after.storage - before.storage) / 1e6, Unit: report.Megabytes},
		report.Figure{Chapter: name, Name: "API request, P50", Value: latency.quantile(0.5), Unit: report.Seconds},
		report.Figure{Chapter: name, Name: "API request, P99", Value: latency.quantile(0.99), Unit: report.Seconds},
		report.Figure{Chapter: name, Name: "watches", Value: after.watches},
		report.Figure{Chapter: name, Name: "BundleDeployments stored", Value: float64(r.stored())},
	)
	for _, kind := range []struct {
		label         string
		before, after map[string]float64
	}{{"reconciles of ", before.reconciles, after.reconciles}, {"evaluations ", before.evaluations, after.evaluations}} {
		for _, of := range slices.Sorted(maps.Keys(kind.after)) {
			if count := kind.after[of] - kind.before[of]; count > 0 {
				sheet.Add(report.Figure{Chapter: name, Name: kind.label + of, Value: count})
			}
		}
	}
}

// stored counts the objects that carry deployments.
func (r *run) stored() int {
	r.t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeploymentList"))
	if err := r.client.List(r.t.Context(), list); err != nil {
		r.t.Fatal(err)
	}
	return len(list.Items)
}

// fanOut makes the bundles; agents answer when they are let.
func (r *run) fanOut() time.Time {
	r.t.Helper()
	r.eachBundle(func(ctx context.Context, i int) error { return r.client.Create(ctx, r.bundle(i, "first")) })
	return r.agents.await(r.t, "every pair has its deployment", func(c counts) bool { return c.all == r.pairs() })
}

func (r *run) eachBundle(work func(ctx context.Context, i int) error) {
	r.t.Helper()
	group, ctx := errgroup.WithContext(r.t.Context())
	group.SetLimit(workers)
	for i := range r.size.bundles {
		group.Go(func() error { return work(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *run) everythingReports() time.Time {
	r.t.Helper()
	r.agents.release()
	return r.agents.await(r.t, "every pair is ready", func(c counts) bool { return c.answered == r.pairs() })
}

// change gives every bundle other files; agents answer at once.
func (r *run) change() time.Time {
	r.t.Helper()
	r.eachBundle(func(ctx context.Context, i int) error {
		changed := r.bundle(i, "second")
		patch := r.floor.encode(map[string]any{"spec": map[string]any{"resources": changed.Spec.Resources}})
		return r.client.Patch(ctx, changed, client.RawPatch(types.MergePatchType, patch))
	})
	return r.agents.await(r.t, "every pair has changed", func(c counts) bool { return c.changedAnswered == r.pairs() })
}

// ringsAppear makes two bundles that go to five clusters each and fail there for good, and their groups.
func (r *run) ringsAppear() {
	r.t.Helper()
	for _, ring := range [rings]string{"a", "b"} {
		selector := &metav1.LabelSelector{MatchLabels: map[string]string{ringLabel: ring}}
		group := &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: stack.Workspace, Name: "ring-" + ring}}
		group.Spec.Selector = selector
		own := madeBundle(0, "ring")
		own.Name = "ring-" + ring
		own.Spec.Targets[0].ClusterSelector = selector
		for _, object := range []client.Object{group, own} {
			if err := r.client.Create(r.t.Context(), object); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	r.awaitRing("a", ringSize)
	r.awaitRing("b", ringSize)
	r.awaitExact(time.Now())
	r.settle()
}

// awaitRing waits until as many clusters have the bundle of a ring, and have said that it fails.
func (r *run) awaitRing(ring string, count int) {
	r.t.Helper()
	await(r.t, fmt.Sprintf("%d clusters have ring-%s", count, ring), func(context.Context) error {
		found := 0
		for key, deployment := range r.agents.all() {
			if key.Name == "ring-"+ring && len(deployment.Status.Conditions) > 0 {
				found++
			}
		}
		if found != count {
			return fmt.Errorf("%d have", found)
		}
		return nil
	})
}

// labelChanges moves one cluster from one ring to the other.
func (r *run) labelChanges() time.Time {
	r.t.Helper()
	moved := r.members[0].object(0)
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:"b"}}}`, ringLabel)
	if err := r.client.Patch(r.t.Context(), moved, client.RawPatch(types.MergePatchType, patch)); err != nil {
		r.t.Fatal(err)
	}
	r.awaitRing("a", ringSize-1)
	r.awaitRing("b", ringSize+1)
	return time.Now()
}

func (r *run) clusterDies() time.Time {
	r.t.Helper()
	r.victim().setDead(true)
	r.awaitPhase(fleet.ClusterNotReady, 1)
	return time.Now()
}

func (r *run) clusterReturns() time.Time {
	r.t.Helper()
	r.victim().setDead(false)
	r.awaitPhase(fleet.ClusterReady, len(r.members))
	return time.Now()
}

func (r *run) idle() time.Time {
	r.t.Helper()
	window := time.NewTimer(r.size.idle)
	defer window.Stop()
	select {
	case <-window.C:
	case <-r.t.Context().Done():
	}
	return time.Now()
}

func (r *run) deleteAll() time.Time {
	r.t.Helper()
	r.eachBundle(func(ctx context.Context, i int) error { return r.client.Delete(ctx, madeBundle(i, "second")) })
	return r.agents.await(r.t, "every deployment is gone", func(c counts) bool { return c.all == 0 })
}

// clean removes the rest, so that another run finds what this one found.
func (r *run) clean() {
	r.t.Helper()
	for _, list := range []client.Object{&fleet.Bundle{}, &fleet.ClusterGroup{}, &fleet.Cluster{}} {
		if err := r.client.DeleteAllOf(r.t.Context(), list, client.InNamespace(stack.Workspace)); err != nil {
			r.t.Fatal(err)
		}
	}
	await(r.t, "no cluster is left", func(ctx context.Context) error {
		var list fleet.ClusterList
		if err := r.client.List(ctx, &list); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d are", len(list.Items))
		}
		return nil
	})
}
