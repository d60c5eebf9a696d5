package tally

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/statustest"
)

func keyOf(bd *fleet.BundleDeployment) Ref { return Ref{bd.Namespace, bd.Name} }

// plain counts from scratch, the slow and obvious way.
func plain(records map[Ref]*fleet.BundleDeployment, parent Parent) Rollup {
	x := NewIndex()
	for key, bd := range records {
		x.Set(key, Trim(bd))
	}
	var want Rollup
	clusters, repos, ops := map[string][2]int{}, map[string][2]int{}, map[string][2]int{}
	for _, bd := range records {
		record := Trim(bd)
		belongs := false
		for _, p := range record.parents() {
			belongs = belongs || p == parent
		}
		if !belongs {
			continue
		}
		status.Count(&want.Summary, record.State, 1)
		want.Summary.DesiredReady++
		addCounts(&want.Counts, &bd.Status.ResourceCounts, 1)
		tally(clusters, record.Cluster.String(), record.State)
		if record.Repo != "" {
			tally(repos, record.Repo, record.State)
		} else if record.HelmOp != "" {
			tally(ops, record.HelmOp, record.State)
		}
	}
	switch parent.Kind {
	case KindGitRepo, KindHelmOp:
		want.ReadyClusters, want.Clusters = fullyReady(clusters)
	case KindCluster:
		want.ReadyGitRepos, want.GitRepos = fullyReady(repos)
		want.ReadyHelmOps, want.HelmOps = fullyReady(ops)
	}
	want.Summary.NonReadyResources = x.Of(parent).Summary.NonReadyResources
	return want
}

func tally(groups map[string][2]int, key string, state fleet.BundleState) {
	counts := groups[key]
	counts[1]++
	if state == fleet.Ready {
		counts[0]++
	}
	groups[key] = counts
}

func fullyReady(groups map[string][2]int) (ready, all int) {
	for _, counts := range groups {
		all++
		if counts[0] == counts[1] {
			ready++
		}
	}
	return ready, all
}

// Under random events, changes of labels, repetitions and deletions the index counts what a fresh count
// gives, and reports every parent whose numbers moved.
func TestRollupEqualsRecomputation(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 3))
		x := NewIndex()
		world := map[Ref]*fleet.BundleDeployment{}
		parents := map[Parent]Rollup{}
		for range 200 {
			bd := statustest.Deployment(fmt.Sprintf("b%d", random.IntN(4)), fmt.Sprintf("c%d", random.IntN(5)), statustest.States()[random.IntN(len(statustest.States()))])
			switch random.IntN(6) {
			case 0:
				bd.Labels[fleet.RepoLabel] = "other"
			case 1:
				delete(bd.Labels, fleet.RepoLabel)
			case 2:
				delete(bd.Labels, fleet.RepoLabel)
				bd.Labels[fleet.HelmOpLabel] = "op"
			}
			affected := disturb(random, x, world, bd)
			for parent, before := range parents {
				now := x.Of(parent)
				if changed := !reflect.DeepEqual(before, now); changed && !affected[parent] {
					t.Fatalf("seed %d: %v changed unnoticed", seed, parent)
				}
				parents[parent] = now
			}
			for parent := range affected {
				parents[parent] = x.Of(parent)
			}
		}
		for parent := range parents {
			if diff := cmp.Diff(plain(world, parent), x.Of(parent)); diff != "" {
				t.Fatalf("seed %d: %v (-recomputed +index):\n%s", seed, parent, diff)
			}
		}
		for key := range world {
			x.Delete(key)
		}
		if x.Len() != 0 || len(x.rollups) != 0 {
			t.Errorf("seed %d: %d records and %d roll-ups stay", seed, x.Len(), len(x.rollups))
		}
	}
}

func disturb(random *rand.Rand, x *Index, world map[Ref]*fleet.BundleDeployment, bd *fleet.BundleDeployment) map[Parent]bool {
	affected := map[Parent]bool{}
	var list []Parent
	if random.IntN(4) == 0 {
		list = x.Delete(keyOf(bd))
		delete(world, keyOf(bd))
	} else {
		list = x.Set(keyOf(bd), Trim(bd))
		world[keyOf(bd)] = bd
	}
	for _, parent := range list {
		affected[parent] = true
	}
	return affected
}

func TestSetTwiceIsNoChange(t *testing.T) {
	x := NewIndex()
	for _, state := range statustest.States() {
		bd := statustest.Deployment("b", "c", state)
		if first := x.Set(keyOf(bd), Trim(bd)); len(first) != 3 {
			t.Errorf("%s: %v", state, first)
		}
		if again := x.Set(keyOf(bd), Trim(bd.DeepCopy())); again != nil {
			t.Errorf("%s: again %v", state, again)
		}
	}
	if gone := x.Delete(Ref{"no", "such"}); gone != nil {
		t.Error(gone)
	}
}

func TestNonReadyResources(t *testing.T) {
	x := NewIndex()
	for i := range 30 {
		bd := statustest.Deployment("b", fmt.Sprintf("c%02d", i), []fleet.BundleState{fleet.Ready, fleet.NotReady, fleet.ErrApplied}[i%3])
		x.Set(keyOf(bd), Trim(bd))
	}
	list := x.Bundle("ws", "b").Summary.NonReadyResources
	if len(list) != 10 {
		t.Fatalf("%d entries", len(list))
	}
	for i, resource := range list {
		want := fleet.NonReadyResource{Name: fmt.Sprintf("ws/c%02d", 3*i+2), State: fleet.ErrApplied, Message: "chart of b does not render"}
		if diff := cmp.Diff(want, resource); diff != "" {
			t.Error(diff)
		}
	}
	if got := x.Cluster("ws", "c02").Summary.NonReadyResources[0].Name; got != "b" {
		t.Errorf("on a cluster it is named %q", got)
	}
}

func TestResources(t *testing.T) {
	x := NewIndex()
	for i, state := range statustest.States() {
		bd := statustest.Deployment("b", fmt.Sprintf("c%d", i), state)
		if state == fleet.Modified {
			bd.Status.ModifiedStatus = append(bd.Status.ModifiedStatus,
				fleet.ModifiedStatus{APIVersion: "v1", Kind: "Namespace", Name: "app", Create: true},
				fleet.ModifiedStatus{APIVersion: "v1", Kind: "Secret", Namespace: "app", Name: "extra", Delete: true})
		}
		x.Set(keyOf(bd), Trim(bd))
	}
	got := x.Resources(Parent{KindGitRepo, Ref{"ws", "repo"}})
	want := []fleet.Resource{
		{APIVersion: "apps/v1", Kind: "Deployment", Type: "apps.deployment", ID: "app/b", Namespace: "app", Name: "b", State: "ErrApplied",
			PerClusterState: fleet.PerClusterState{Ready: []string{"ws/c0", "ws/c3"}, NotReady: []string{"ws/c1"}, OutOfSync: []string{"ws/c2"}, WaitApplied: []string{"ws/c4"}, ErrApplied: []string{"ws/c5"}}},
		{APIVersion: "v1", Kind: "ConfigMap", Type: "configmap", ID: "app/b-config", Namespace: "app", Name: "b-config", State: "ErrApplied",
			PerClusterState: fleet.PerClusterState{Ready: []string{"ws/c0", "ws/c1"}, OutOfSync: []string{"ws/c2"}, Modified: []string{"ws/c3"}, WaitApplied: []string{"ws/c4"}, ErrApplied: []string{"ws/c5"}}},
		{APIVersion: "v1", Kind: "Namespace", Type: "namespace", ID: "app", Name: "app", State: "ErrApplied",
			PerClusterState: fleet.PerClusterState{Ready: []string{"ws/c0", "ws/c1"}, OutOfSync: []string{"ws/c2"}, Missing: []string{"ws/c3"}, WaitApplied: []string{"ws/c4"}, ErrApplied: []string{"ws/c5"}}},
		{APIVersion: "v1", Kind: "Secret", Type: "secret", ID: "app/extra", Namespace: "app", Name: "extra", State: "Orphaned",
			PerClusterState: fleet.PerClusterState{Orphaned: []string{"ws/c3"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestIncompleteIsUnknown(t *testing.T) {
	bd := statustest.Deployment("b", "c", fleet.NotReady)
	bd.Status.IncompleteState = true
	x := NewIndex()
	x.Set(keyOf(bd), Trim(bd))
	for _, resource := range x.Resources(Parent{KindGitRepo, Ref{"ws", "repo"}}) {
		want := "Unknown"
		if resource.Kind == "Deployment" {
			want = "NotReady"
		}
		if resource.State != want || resource.IncompleteState != (want == "Unknown") {
			t.Errorf("%s: %s, incomplete %v", resource.Kind, resource.State, resource.IncompleteState)
		}
	}
}

// A pair takes little memory, whether it is fine or not.
func TestMemoryPerPair(t *testing.T) {
	for name, test := range map[string]struct {
		make func(bundle, cluster string) *fleet.BundleDeployment
		want uint64
	}{
		"ready":   {func(b, c string) *fleet.BundleDeployment { return statustest.Deployment(b, c, fleet.Ready) }, 1200},
		"failing": {func(b, c string) *fleet.BundleDeployment { return statustest.Failing(b, c, 20) }, 5000},
	} {
		x := NewIndex()
		const clusters, bundles = 200, 20
		before := heap()
		for c := range clusters {
			for b := range bundles {
				bd := test.make(fmt.Sprintf("b%d", b), fmt.Sprintf("c%d", c))
				x.Set(keyOf(bd), Trim(bd))
			}
		}
		each := (heap() - before) / (clusters * bundles)
		t.Logf("%s: %d bytes a pair", name, each)
		if each > test.want {
			t.Errorf("%s: %d bytes a pair, want at most %d", name, each, test.want)
		}
		runtime.KeepAlive(x)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func BenchmarkSet(b *testing.B) {
	x := NewIndex()
	var ready, waiting []Record
	var keys []Ref
	for c := range 1000 {
		for n := range 10 {
			bd := statustest.Deployment(fmt.Sprintf("b%d", n), fmt.Sprintf("c%d", c), fleet.Ready)
			keys, ready = append(keys, keyOf(bd)), append(ready, Trim(bd))
			waiting = append(waiting, Trim(statustest.Deployment(fmt.Sprintf("b%d", n), fmt.Sprintf("c%d", c), fleet.WaitApplied)))
			x.Set(keyOf(bd), Trim(bd))
		}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		list := ready
		if i/len(keys)%2 == 0 {
			list = waiting
		}
		x.Set(keys[i%len(keys)], list[i%len(keys)])
	}
}

func BenchmarkQueries(b *testing.B) {
	x := NewIndex()
	for c := range 1000 {
		for n := range 20 {
			bd := statustest.Deployment(fmt.Sprintf("b%d", n), fmt.Sprintf("c%d", c), statustest.States()[(c+n)%len(statustest.States())])
			x.Set(keyOf(bd), Trim(bd))
		}
	}
	repo := Parent{KindGitRepo, Ref{"ws", "repo"}}
	b.Run("rollup", func(b *testing.B) {
		for b.Loop() {
			x.Of(repo)
		}
	})
	b.Run("resources", func(b *testing.B) {
		for b.Loop() {
			x.Resources(repo)
		}
	})
}
