package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
)

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	shop  = types.NamespacedName{Namespace: "ws", Name: "shop"}
)

// at returns an empty ledger whose clock stands still.
func at(now time.Time) *Ledger { return New(Options{Now: func() time.Time { return now }}) }

func deploymentIn(namespace, version string) *fleet.BundleDeployment {
	return &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop", ResourceVersion: version}}
}

func leaving(deployment *fleet.BundleDeployment) *fleet.BundleDeployment {
	deployment.DeletionTimestamp = &metav1.Time{Time: start}
	return deployment
}

func TestVisible(t *testing.T) {
	type list = []*fleet.BundleDeployment
	wrote := func(l *Ledger) { l.Wrote(shop, "a", "10") }
	for name, test := range map[string]struct {
		writes func(*Ledger)
		shown  list
		after  time.Duration
		want   bool
	}{
		"nothing written":      {func(*Ledger) {}, nil, 0, true},
		"not there":            {wrote, nil, 0, false},
		"older":                {wrote, list{deploymentIn("a", "9")}, 0, false},
		"the same":             {wrote, list{deploymentIn("a", "10")}, 0, true},
		"newer":                {wrote, list{deploymentIn("a", "11")}, 0, true},
		"one of two":           {func(l *Ledger) { wrote(l); l.Wrote(shop, "b", "12") }, list{deploymentIn("a", "10")}, 0, false},
		"others do not count":  {wrote, list{deploymentIn("a", "10"), deploymentIn("z", "1")}, 0, true},
		"labels only":          {func(l *Ledger) { l.Wrote(shop, "a", "11") }, list{deploymentIn("a", "10")}, 0, false},
		"deleted, still there": {func(l *Ledger) { l.Removed(shop, "a") }, list{deploymentIn("a", "10")}, 0, false},
		"deleted, leaving":     {func(l *Ledger) { l.Removed(shop, "a") }, list{leaving(deploymentIn("a", "10"))}, 0, true},
		"deleted, gone":        {func(l *Ledger) { l.Removed(shop, "a") }, nil, 0, true},
		"written, deleted":     {func(l *Ledger) { wrote(l); l.Removed(shop, "a") }, nil, 0, true},
		"deleted, made again":  {func(l *Ledger) { l.Removed(shop, "a"); wrote(l) }, list{deploymentIn("a", "10")}, 0, true},
		"never shown, soon":    {wrote, nil, forgetWrites - 1, false},
		"never shown, at last": {wrote, nil, forgetWrites, true},
		"another bundle's":     {func(l *Ledger) { l.Wrote(types.NamespacedName{Name: "x"}, "a", "10") }, nil, 0, true},
		"version unknown":      {func(l *Ledger) { l.Wrote(shop, "a", "") }, list{deploymentIn("a", "1")}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := start
			writes := New(Options{Now: func() time.Time { return now }})
			test.writes(writes)
			now = start.Add(test.after)
			if got := writes.Visible(shop, test.shown); got != test.want {
				t.Errorf("visible: %v, want %v", got, test.want)
			}
			now = start
			if test.want && !writes.Visible(shop, nil) {
				t.Error("what was shown once is asked for again")
			}
		})
	}
}

// A cache that replays writes in order is believed exactly when it has replayed the last of each deployment.
func TestVisibleAtTheLastWrite(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		writes := at(start)
		last := map[string]int{}
		type event struct {
			namespace string
			version   int
			deleted   bool
		}
		var events []event
		for version := range 1 + random.IntN(12) {
			e := event{fmt.Sprint(random.IntN(4)), version + 1, random.IntN(4) == 0}
			if e.deleted {
				writes.Removed(shop, e.namespace)
			} else {
				writes.Wrote(shop, e.namespace, fmt.Sprint(e.version))
			}
			last[e.namespace] = e.version
			events = append(events, e)
		}
		var shown []*fleet.BundleDeployment
		for i, e := range events {
			shown = slices.DeleteFunc(shown, func(d *fleet.BundleDeployment) bool { return d.Namespace == e.namespace })
			if !e.deleted {
				shown = append(shown, deploymentIn(e.namespace, fmt.Sprint(e.version)))
			}
			all := i == len(events)-1
			if got := writes.Visible(shop, shown); all && !got {
				t.Fatalf("everything is shown, and it waits: %v", events)
			} else if got && !all {
				// Allowed only where no written deployment is older than its last write.
				for _, deployment := range shown {
					if want := fmt.Sprint(last[deployment.Namespace]); deployment.ResourceVersion != want {
						t.Fatalf("believed too early after %d of %v", i+1, events)
					}
				}
				break
			}
		}
	}
}

func TestShowsOwn(t *testing.T) {
	writes := at(start)
	if !writes.ShowsOwn(shop, "5") {
		t.Error("waits for a write that never was")
	}
	writes.WroteOwn(shop, "10")
	if writes.ShowsOwn(shop, "9") || !writes.ShowsOwn(shop, "10") || !writes.ShowsOwn(shop, "100") {
		t.Error("resource versions are compared wrongly")
	}
	writes.Visible(shop, nil)
	if writes.ShowsOwn(shop, "9") {
		t.Error("what deployments show says something about the bundle")
	}
	writes.Forget(shop)
	if !writes.ShowsOwn(shop, "9") || len(writes.bundles) != 0 {
		t.Error("forgetting leaves something")
	}
}

// A cache shows writes in the order of their versions, so that the newest one stands for all.
func TestLastWrite(t *testing.T) {
	writes := at(start)
	expect := func(what, namespace, version string) {
		t.Helper()
		gotNamespace, gotVersion, _, ok := writes.last(shop)
		if gotNamespace != namespace || gotVersion != version || ok != (namespace != "") {
			t.Errorf("%s: %q %q %v, want %q %q", what, gotNamespace, gotVersion, ok, namespace, version)
		}
	}
	expect("nothing written", "", "")
	writes.Wrote(shop, "a", "10")
	writes.Wrote(shop, "b", "30")
	writes.Wrote(shop, "c", "20")
	expect("three written", "b", "30")
	writes.Wrote(shop, "b", "40")
	expect("written again", "b", "40")
	writes.Removed(shop, "a")
	expect("another deleted", "b", "40")
	writes.Removed(shop, "b")
	expect("deleted", "", "")
	writes.Wrote(shop, "d", "50")
	if !writes.Visible(shop, []*fleet.BundleDeployment{deploymentIn("c", "20"), deploymentIn("d", "50")}) {
		t.Error("what is shown is not visible")
	}
	expect("all shown", "", "")
	if writes.isOwn(shop, "e", "60") || writes.isOwn(shop, "", "") {
		t.Error("somebody else's write is ours")
	}
	writes.Wrote(shop, "e", "60")
	if !writes.isOwn(shop, "e", "60") || writes.isOwn(shop, "e", "61") {
		t.Error("our own write is not told from another")
	}
}

// A watch may stand still for long. What it does not show is asked for before anything is planned on what was before.
func TestACacheThatStaysBehind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	const inMerged = "merged " // before the version of a merged object
	having := func(versions ...string) client.Client {
		build := fake.NewClientBuilder().WithScheme(scheme)
		for _, version := range versions {
			version, merged := strings.CutPrefix(version, inMerged)
			object := deploymentIn("a", version)
			if merged {
				object.Name, object.Labels = "of-the-repository", map[string]string{fleet.MergedLabel: "true"}
				object.Spec.Parts = map[string]fleet.DeploymentPart{"shop": {}}
			}
			build = build.WithObjects(object)
		}
		return build.Build()
	}
	for name, test := range map[string]struct {
		cached, stored []string
		after          time.Duration
		want           bool
	}{
		"shown":                       {[]string{"10"}, nil, 0, false},
		"newer":                       {[]string{"11"}, nil, 0, false},
		"older":                       {[]string{"9"}, nil, 0, true},
		"older for long":              {[]string{"9"}, []string{"10"}, time.Minute, true},
		"missing for long":            {nil, []string{"12"}, time.Minute, true},
		"deleted by somebody":         {nil, nil, time.Minute, false},
		"deleted, and still there":    {[]string{"9"}, nil, time.Minute, false},
		"older on the API server too": {[]string{"9"}, []string{"9"}, time.Minute, false},
		"merged, older for long":      {[]string{"9"}, []string{inMerged + "10"}, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := start
			clock := func() time.Time { return now }
			writes := New(Options{Client: having(test.cached...), Reader: having(test.stored...), Now: clock, Caches: confirm.NewInformers(nil, confirm.KindOf(scheme), clock)})
			writes.Wrote(shop, "a", "10")
			now = start.Add(test.after)
			if got := writes.Behind(t.Context(), shop); got != test.want {
				t.Errorf("behind: %v, want %v", got, test.want)
			}
		})
	}
}
