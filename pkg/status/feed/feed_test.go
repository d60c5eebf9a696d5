package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

func newFeed() *Feed {
	made, err := New(nil, nil, func() time.Time { return begin })
	if err != nil {
		panic(err) // it has no registry that could refuse
	}
	return made
}

func deployment(cluster, bundle int, generation int64, ready bool) *fleet.BundleDeployment {
	made := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprintf("cluster-%d", cluster), Name: fmt.Sprintf("b%d", bundle), Generation: generation,
		Labels: map[string]string{
			fleet.BundleNamespaceLabel: "ws", fleet.BundleLabel: fmt.Sprintf("b%d", bundle),
			fleet.ClusterNamespaceLabel: "ws", fleet.ClusterLabel: fmt.Sprintf("c%d", cluster),
			fleet.RepoLabel: fmt.Sprintf("r%d", bundle%2),
		},
	}}
	made.Spec.DeploymentID, made.Spec.StagedDeploymentID = "s:1", "s:1"
	if ready {
		made.Status.AppliedDeploymentID, made.Status.Ready, made.Status.NonModified = "s:1", true, true
	}
	return made
}

// changedIn returns, by kind, how many parents wait to be told, and lets them rest.
func changedIn(f *Feed) map[tally.ParentKind]int {
	counts := map[tally.ParentKind]int{}
	for parent := range f.calm.waiting {
		counts[parent.Kind]++
		f.calm.rest(parent, f.calm.mark(parent))
	}
	return counts
}

func TestNothingBeforeEverythingIsCounted(t *testing.T) {
	f := newFeed()
	for i := range 3 {
		f.changed(deployment(i, 1, 1, true))
	}
	_, bundle := f.Bundle("ws", "b1")
	_, cluster := f.Cluster("ws", "c1")
	_, repo := f.GitRepo("ws", "r1")
	if bundle || cluster || repo || len(changedIn(f)) > 0 {
		t.Fatal("numbers are given out or announced too early")
	}
	f.open()
	rollup, ok := f.Bundle("ws", "b1")
	if !ok || rollup.Summary.Ready != 3 || rollup.Summary.DesiredReady != 3 {
		t.Errorf("bundle: %+v, %v", rollup.Summary, ok)
	}
	if repo, ok := f.GitRepo("ws", "r1"); !ok || repo.Rollup.Clusters != 3 {
		t.Errorf("repo: %+v, %v", repo.Rollup, ok)
	}
	if got := changedIn(f); got[tally.KindBundle] != 1 || got[tally.KindGitRepo] != 1 || got[tally.KindCluster] != 3 {
		t.Errorf("told of what came early: %v", got)
	}
	if unknown, ok := f.Bundle("ws", "nobody"); !ok || unknown.Summary.DesiredReady != 0 {
		t.Errorf("unknown bundle: %+v, %v", unknown, ok)
	}
}

// After any events the numbers are those of a feed that counts what is left from the beginning.
func TestFeedEqualsRecomputation(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 60 {
		f := newFeed()
		left := map[tally.Ref]*fleet.BundleDeployment{}
		opening := random.IntN(80)
		for step := range 80 {
			if step == opening {
				f.open()
			}
			object := deployment(random.IntN(4), random.IntN(4), int64(step), random.IntN(2) == 0)
			key := keyOf(object)
			switch random.IntN(4) {
			case 0:
				f.deleted(object)
				delete(left, key)
			case 1:
				f.deleted(toolscache.DeletedFinalStateUnknown{Key: key.String(), Obj: nil})
				delete(left, key)
			default:
				f.changed(object)
				left[key] = object
			}
		}
		fresh := newFeed()
		fresh.open()
		for _, object := range left {
			fresh.changed(object)
		}
		for i := range 4 {
			for name, ask := range map[string]func(*Feed) any{
				"bundle":  func(f *Feed) any { got, _ := f.Bundle("ws", fmt.Sprintf("b%d", i)); return got },
				"cluster": func(f *Feed) any { got, _ := f.Cluster("ws", fmt.Sprintf("c%d", i)); return got },
				"repo":    func(f *Feed) any { got, _ := f.GitRepo("ws", fmt.Sprintf("r%d", i)); return got },
			} {
				if got, want := ask(f), ask(fresh); !reflect.DeepEqual(got, want) {
					t.Fatalf("%s %d: %+v, counted anew %+v", name, i, got, want)
				}
			}
		}
		if len(f.generations) != len(left) {
			t.Fatalf("%d generations of %d deployments are kept", len(f.generations), len(left))
		}
	}
}

func TestCovers(t *testing.T) {
	f := newFeed()
	f.changed(deployment(1, 1, 5, true))
	for name, test := range map[string]struct {
		asked []*fleet.BundleDeployment
		want  bool
	}{
		"none":    {nil, true},
		"counted": {[]*fleet.BundleDeployment{deployment(1, 1, 5, false)}, true},
		"older":   {[]*fleet.BundleDeployment{deployment(1, 1, 4, true)}, true},
		"newer":   {[]*fleet.BundleDeployment{deployment(1, 1, 6, true)}, false},
		"unknown": {[]*fleet.BundleDeployment{deployment(1, 1, 5, true), deployment(2, 1, 1, true)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := f.Covers(test.asked); got != test.want {
				t.Errorf("covers: %v, want %v", got, test.want)
			}
		})
	}
	f.deleted(deployment(1, 1, 5, true))
	if f.Covers([]*fleet.BundleDeployment{deployment(1, 1, 5, true)}) {
		t.Error("a deployment that is gone is counted")
	}
}

func TestNobodyIsToldOfWhatDoesNotCount(t *testing.T) {
	f := newFeed()
	f.open()
	f.changed(deployment(1, 1, 1, true))
	if got := changedIn(f); got[tally.KindBundle] != 1 || got[tally.KindCluster] != 1 {
		t.Fatalf("told of a new deployment: %v", got)
	}
	again := deployment(1, 1, 2, true)
	again.ResourceVersion = "77"
	f.changed(again)
	f.changed(&fleet.Bundle{})
	f.deleted(&fleet.Bundle{})
	f.deleted(toolscache.DeletedFinalStateUnknown{Key: "a/b/c"})
	if got := changedIn(f); len(got) != 0 {
		t.Errorf("events without meaning are told: %v", got)
	}
}

// A change wakes up the controllers of its parents, each in its time, until the context ends.
func TestControllersAreWokenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := New(nil, nil, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		queues := map[tally.ParentKind]workqueue.TypedRateLimitingInterface[reconcile.Request]{}
		for _, kind := range []tally.ParentKind{tally.KindBundle, tally.KindGitRepo, tally.KindCluster} {
			queues[kind] = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queues[kind].ShutDown()
			if err := f.Source(kind).Start(t.Context(), queues[kind]); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() { f.wake(ctx) })
		f.open()
		f.changed(deployment(1, 1, 1, true))
		f.Changed(tally.KindGitRepo, "ws", "other")
		for _, step := range []struct {
			after                  time.Duration
			bundle, repos, cluster int
		}{{300 * time.Millisecond, 1, 2, 0}, {2 * time.Second, 1, 2, 1}} {
			time.Sleep(step.after)
			synctest.Wait()
			if b, r, c := queues[tally.KindBundle].Len(), queues[tally.KindGitRepo].Len(), queues[tally.KindCluster].Len(); b != step.bundle || r != step.repos || c != step.cluster {
				t.Errorf("%s later: %d bundles, %d repos, %d clusters are woken up", step.after, b, r, c)
			}
		}
		telling := f.Telling(tally.KindBundle, "ws", "b1")
		if !telling.May() || telling.May() {
			t.Error("a bundle is told twice in a second, or never")
		}
		if none := (Telling{}); !none.May() {
			t.Error("without a feed nothing is told")
		}
		cancel()
		loop.Wait()
	})
}
