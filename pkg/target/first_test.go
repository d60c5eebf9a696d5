package target

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// baseOn is a bundle to deliver first, with deployments on some clusters.
func baseOn(t testing.TB, spec string, settled bool, clusters ...ClusterInfo) First {
	t.Helper()
	first := First{Bundle: bundleOf(t, spec), Settled: settled}
	first.Bundle.Name = "base"
	for i := range clusters {
		deployment := &fleet.BundleDeployment{}
		deployment.Namespace, deployment.Name = clusters[i].DeploymentNamespace, "base"
		first.Current = append(first.Current, deployment)
	}
	return first
}

func TestFirst(t *testing.T) {
	const onProd = "targets: [{clusterSelector: {matchLabels: {env: prod}}}]"
	all := fleetOf(3) // dev, test, prod
	ready := func(w *world) { w.answerAll() }
	for name, test := range map[string]struct {
		first []First
		// told is what clusters run already; content is what is new.
		told          func(*world)
		content       string
		want          string
		wantUnsettled bool
		wantAwaited   bool
	}{
		"nothing first":             {nil, nil, "s-2", "create c000, create c001, create c002", false, false},
		"it is everywhere":          {[]First{baseOn(t, alike, true, all...)}, nil, "s-2", "create c000, create c001, create c002", false, false},
		"it lacks a cluster":        {[]First{baseOn(t, alike, true, all[:2]...)}, nil, "s-2", "create c000, create c001, hold c002", false, true},
		"it goes elsewhere":         {[]First{baseOn(t, onProd, true, all[2])}, nil, "s-2", "create c000, create c001, create c002", false, false},
		"it is not planned":         {[]First{baseOn(t, alike, false)}, nil, "s-2", "hold c000, hold c001, hold c002", true, true},
		"it changes":                {[]First{baseOn(t, alike, false, all...)}, ready, "s-2", "hold c000, hold c001, hold c002", true, true},
		"it changes on one cluster": {[]First{baseOn(t, onProd, false, all[2])}, ready, "s-2", "update c000, update c001, hold c002", true, true},
		"it changed":                {[]First{baseOn(t, alike, true, all...)}, ready, "s-2", "update c000, update c001, update c002", false, false},
		"nothing is new":            {[]First{baseOn(t, alike, false)}, ready, "s-1", "", false, false},
		"it can reach nothing":      {[]First{baseOn(t, "targets: [{clusterSelector: {matchLabels: {'-': '-'}}}]", false)}, nil, "s-2", "create c000, create c001, create c002", false, false},
		"it is taken out":           {[]First{baseOn(t, "targets: [{clusterSelector: {matchLabels: {env: dev}}, doNotDeploy: true}, {clusterSelector: {}}]", true, all[1:]...)}, nil, "s-2", "create c000, create c001, create c002", false, false},
		"two of them":               {[]First{baseOn(t, alike, true, all[0]), baseOn(t, onProd, false)}, nil, "s-2", "create c000, hold c001, hold c002", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := Snapshot{Bundle: bundleOf(t, alike), ManifestID: "s-1", Clusters: all}
			if test.told != nil {
				w.settle(s)
				test.told(w)
			}
			s.ManifestID, s.Current, s.First = test.content, w.current(), test.first
			plan := planFor(t, s)
			if got := actions(plan); got != test.want {
				t.Errorf("plan: %s\nwant: %s", got, test.want)
			}
			if plan.Unsettled != test.wantUnsettled || len(plan.Awaited) > 0 != test.wantAwaited || len(plan.Awaited) > 1 {
				t.Errorf("unsettled %v, awaited %v", plan.Unsettled, plan.Awaited)
			}
			for _, failure := range plan.Failed {
				if fault.ClassOf(failure.Err) != fault.Waiting || !strings.Contains(failure.Err.Error(), "waiting for bundle base") {
					t.Errorf("%s: %v", failure.Cluster, failure.Err)
				}
			}
		})
	}
}

// However two bundles are planned, one of which depends on the other, and whatever changes between: no cluster that both reach
// gets the second before it has the first, in the newest version; and in the end each has what it is to have.
func TestFirstComesFirst(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 7))
		spec := []string{alike, "targets: [{clusterSelector: {matchExpressions: [{key: env, operator: In, values: [dev, prod]}]}}]"}[random.IntN(2)]
		base, app := newWorld(t), newWorld(t)
		s := map[*world]*Snapshot{
			base: {Bundle: bundleOf(t, spec), ManifestID: "s-1"}, app: {Bundle: bundleOf(t, alike), ManifestID: "s-1"},
		}
		s[base].Bundle.Name = "base"
		all, clusters, planned := fleetOf(6), 1+random.IntN(3), ""
		pass := func(w *world) {
			in := s[w]
			in.Clusters, in.Current = all[:clusters], w.current()
			if w == app {
				in.First = []First{{Bundle: s[base].Bundle, Settled: planned == s[base].ManifestID, Current: base.current()}}
			} else {
				planned = in.ManifestID
			}
			plan := planFor(t, *in)
			if w == app {
				for _, sent := range slices.Concat(plan.Create, plan.Update) {
					first, has := base.deployments[sent.Object.Namespace]
					info := all[slices.IndexFunc(all, func(c ClusterInfo) bool { return c.Key() == sent.Cluster })]
					if (spec == alike || info.Labels["env"] != "test") && (!has || !strings.HasPrefix(first.Spec.DeploymentID, s[base].ManifestID+":")) {
						t.Fatalf("seed %d: %s gets %s before base %s", seed, sent.Cluster, in.ManifestID, s[base].ManifestID)
					}
				}
			}
			w.carryOut(plan)
		}
		for range 20 {
			switch random.IntN(5) {
			case 0:
				clusters = min(clusters+1, len(all))
			case 1:
				// A commit changes what comes first along with the other, or alone.
				s[base].ManifestID = fmt.Sprintf("s-%d", random.Uint32())
				if random.IntN(2) == 0 {
					s[app].ManifestID = s[base].ManifestID
				}
			case 2:
				pass(base)
			default:
				pass(app)
			}
		}
		pass(base)
		pass(app)
		if len(app.deployments) != clusters {
			t.Fatalf("seed %d: %d of %d clusters have it", seed, len(app.deployments), clusters)
		}
	}
}
