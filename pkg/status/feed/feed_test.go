package feed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

func newFeed() *Feed {
	return New(nil, time.Second, func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) })
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

// queueOf starts a kind's source with a queue of its own.
func queueOf(t *testing.T, f *Feed, kind status.ParentKind) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(queue.ShutDown)
	if err := f.Source(kind).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return queue
}

// drain keeps the channel of clusters empty and returns what came through it when asked.
func drain(f *Feed) map[string]bool {
	found := map[string]bool{}
	for {
		select {
		case e := <-f.Clusters():
			found[e.Object.GetName()] = true
		default:
			return found
		}
	}
}

func TestNothingBeforeEverythingIsCounted(t *testing.T) {
	f := newFeed()
	bundles, repos := queueOf(t, f, status.KindBundle), queueOf(t, f, status.KindGitRepo)
	for i := range 3 {
		f.changed(t.Context(), deployment(i, 1, 1, true))
	}
	_, bundle := f.Bundle("ws", "b1")
	_, cluster := f.Cluster("ws", "c1")
	_, repo := f.GitRepo("ws", "r1")
	if bundle || cluster || repo || bundles.Len()+repos.Len()+len(f.clusters) > 0 {
		t.Fatal("numbers are given out or announced too early")
	}
	f.open(t.Context())
	rollup, ok := f.Bundle("ws", "b1")
	if !ok || rollup.Summary.Ready != 3 || rollup.Summary.DesiredReady != 3 {
		t.Errorf("bundle: %+v, %v", rollup.Summary, ok)
	}
	if repo, ok := f.GitRepo("ws", "r1"); !ok || repo.Rollup.Clusters != 3 {
		t.Errorf("repo: %+v, %v", repo.Rollup, ok)
	}
	if bundles.Len() != 1 || repos.Len() != 1 || len(drain(f)) != 3 {
		t.Error("not everybody is told of what came early")
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
		left := map[status.Ref]*fleet.BundleDeployment{}
		opening := random.IntN(80)
		for step := range 80 {
			if step == opening {
				f.open(t.Context())
			}
			object := deployment(random.IntN(4), random.IntN(4), int64(step), random.IntN(2) == 0)
			key := keyOf(object)
			switch random.IntN(4) {
			case 0:
				f.deleted(t.Context(), object)
				delete(left, key)
			case 1:
				f.deleted(t.Context(), toolscache.DeletedFinalStateUnknown{Key: key.String(), Obj: nil})
				delete(left, key)
			default:
				f.changed(t.Context(), object)
				left[key] = object
			}
			drain(f)
		}
		fresh := newFeed()
		fresh.open(t.Context())
		for _, object := range left {
			fresh.changed(t.Context(), object)
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
	f.changed(t.Context(), deployment(1, 1, 5, true))
	for name, test := range map[string]struct {
		asked []fleet.BundleDeployment
		want  bool
	}{
		"none":    {nil, true},
		"counted": {[]fleet.BundleDeployment{*deployment(1, 1, 5, false)}, true},
		"older":   {[]fleet.BundleDeployment{*deployment(1, 1, 4, true)}, true},
		"newer":   {[]fleet.BundleDeployment{*deployment(1, 1, 6, true)}, false},
		"unknown": {[]fleet.BundleDeployment{*deployment(1, 1, 5, true), *deployment(2, 1, 1, true)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := f.Covers(test.asked); got != test.want {
				t.Errorf("covers: %v, want %v", got, test.want)
			}
		})
	}
	f.deleted(t.Context(), deployment(1, 1, 5, true))
	if f.Covers([]fleet.BundleDeployment{*deployment(1, 1, 5, true)}) {
		t.Error("a deployment that is gone is counted")
	}
}

func TestNobodyIsToldOfWhatDoesNotCount(t *testing.T) {
	f := newFeed()
	bundles := queueOf(t, f, status.KindBundle)
	f.open(t.Context())
	f.changed(t.Context(), deployment(1, 1, 1, true))
	if bundles.Len() != 1 || !drain(f)["c1"] {
		t.Fatal("a new deployment is not told")
	}
	again := deployment(1, 1, 2, true)
	again.ResourceVersion = "77"
	f.changed(t.Context(), again)
	f.changed(t.Context(), &fleet.Bundle{})
	f.deleted(t.Context(), &fleet.Bundle{})
	f.deleted(t.Context(), toolscache.DeletedFinalStateUnknown{Key: "a/b/c"})
	if len(drain(f)) != 0 {
		t.Error("events without meaning are told")
	}
}

// With nobody listening a feed stops at the end of its context and not before.
func TestNotifyingEndsWithTheContext(t *testing.T) {
	f := newFeed()
	f.open(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range cap(f.clusters) + 10 {
		f.changed(ctx, deployment(i, 1, 1, true))
	}
	if rollup, _ := f.Bundle("ws", "b1"); rollup.Summary.Ready != cap(f.clusters)+10 {
		t.Errorf("counted %d", rollup.Summary.Ready)
	}
}
