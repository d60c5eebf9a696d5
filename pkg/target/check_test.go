package target

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// judge returns verdicts about checks: those of clusters of a version that is named fail.
func judge(checks []Check, failing ...string) map[CheckID]Verdict {
	verdicts := map[CheckID]Verdict{}
	for _, check := range checks {
		verdict := Verdict{}
		if slices.Contains(failing, check.ID.KubernetesVersion) {
			verdict.Err = fault.New(fault.Stalled, "RenderFailed", "render bundle app: wants a newer one")
		}
		verdicts[check.ID] = verdict
	}
	return verdicts
}

const alike = "targets: [{name: all, clusterSelector: {}}]"

func versions(clusters []ClusterInfo, list ...string) []ClusterInfo {
	for i, version := range list {
		clusters[i].KubernetesVersion = version
	}
	return clusters
}

func actions(plan Plan) string {
	var words []string
	for _, list := range []struct {
		word        string
		deployments []Deployment
	}{{"create", plan.Create}, {"update", plan.Update}, {"delete", plan.Delete}} {
		for _, deployment := range list.deployments {
			words = append(words, list.word+" "+strings.TrimPrefix(deployment.Cluster, "ws/"))
		}
	}
	for _, failure := range plan.Failed {
		words = append(words, "hold "+strings.TrimPrefix(failure.Cluster, "ws/"))
	}
	return strings.Join(words, ", ")
}

func TestChecks(t *testing.T) {
	ready := func(w *world) { w.answerAll() }
	for name, test := range map[string]struct {
		spec     string
		versions []string
		// off leaves validation out, and unknown the verdicts.
		off, unknown bool
		failing      []string
		// deployed says that the clusters run something before.
		deployed bool
		prepare  func(*world)
		want     string
		checks   int
		waiting  int
		missing  int
	}{
		"switched off":               {off: true, failing: []string{""}, want: "create c000, create c001, create c002"},
		"all render":                 {want: "create c000, create c001, create c002", checks: 1},
		"not known yet":              {unknown: true, checks: 1, waiting: 3, missing: 3},
		"one by one":                 {spec: everywhere, want: "create c000, create c001, create c002", checks: 3},
		"by version":                 {versions: []string{"v1", "v2", "v1"}, failing: []string{"v2"}, want: "create c000, create c002, hold c001", checks: 2, missing: 1},
		"none":                       {failing: []string{""}, want: "hold c000, hold c001, hold c002", checks: 1, missing: 3},
		"changes":                    {deployed: true, prepare: ready, want: "update c000, update c001, update c002", checks: 1},
		"changes that are not known": {deployed: true, prepare: ready, unknown: true, checks: 1, waiting: 3},
		"keeps what it has":          {deployed: true, prepare: ready, versions: []string{"v1", "v2"}, failing: []string{"v2"}, want: "update c000, update c002, hold c001", checks: 3},
		"is told already": {deployed: true, unknown: true, checks: 1, waiting: 2, prepare: func(w *world) {
			bd := w.deployments["cluster-ws-c000"]
			bd.Spec.DeploymentID, bd.Spec.StagedDeploymentID = wanted(w.t), wanted(w.t)
			w.deployments["cluster-ws-c000"] = bd
		}, want: "update c000"},
		"canary is held back": {
			spec:     alike + "\nrolloutStrategy: {partitions: [{name: canary, maxUnavailable: 0, clusterName: c000}, {name: rest}]}",
			deployed: true, prepare: ready, versions: []string{"v2"}, failing: []string{"v2"}, want: "hold c000", checks: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if test.spec == "" {
				test.spec = alike
			}
			w := newWorld(t)
			s := Snapshot{Bundle: bundleOf(t, test.spec), ManifestID: "s-1", Clusters: versions(fleetOf(3), test.versions...)}
			if test.deployed {
				w.settle(s)
			}
			if test.prepare != nil {
				test.prepare(w)
			}
			s.ManifestID, s.Validate, s.Current = "s-2", !test.off, w.current()
			plan := planFor(t, s)
			if !test.unknown {
				s.Verdicts = judge(plan.Checks, test.failing...)
				plan = planFor(t, s)
			}
			if got := actions(plan); got != test.want {
				t.Errorf("plan: %s\nwant: %s", got, test.want)
			}
			if len(plan.Checks) != test.checks || plan.Unchecked != test.waiting || plan.Missing != test.missing {
				t.Errorf("%d checks, %d wait, %d missing; want %d, %d, %d", len(plan.Checks), plan.Unchecked, plan.Missing, test.checks, test.waiting, test.missing)
			}
		})
	}
}

func planFor(t testing.TB, s Snapshot) Plan {
	t.Helper()
	plan, err := NewPlan(s)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// wanted is the id of the second content for a bundle without options.
func wanted(t testing.TB) string {
	t.Helper()
	targets, _, err := Targets(Snapshot{Bundle: bundleOf(t, alike), ManifestID: "s-2", Clusters: fleetOf(1)})
	if err != nil {
		t.Fatal(err)
	}
	return targets[0].DeploymentID
}

// What was held back goes out with the next content that renders, and a converged world asks nothing.
func TestHeldBackHeals(t *testing.T) {
	w := newWorld(t)
	s := Snapshot{Bundle: bundleOf(t, alike), ManifestID: "s-1", Clusters: fleetOf(3), Validate: true}
	for round, fails := range []bool{false, true, false} {
		s.ManifestID = fmt.Sprintf("s-%d", round)
		s.Current, s.Verdicts = w.current(), nil
		failing := []string{"none"}
		if fails {
			failing = []string{""}
		}
		s.Verdicts = judge(planFor(t, s).Checks, failing...)
		plan := w.settle(s)
		if held := len(plan.Failed); fails != (held == 3) {
			t.Errorf("round %d: %d held back", round, held)
		}
		if !fails && len(plan.Checks)+plan.Unchecked > 0 {
			t.Errorf("round %d: still asks for %v", round, plan.Checks)
		}
	}
	for _, bd := range w.deployments {
		if !strings.HasPrefix(bd.Spec.DeploymentID, "s-2:") {
			t.Errorf("%s runs %s", bd.Namespace, bd.Spec.DeploymentID)
		}
	}
}

// A template that fails needs no verdict, and neither does a deployment that is being deleted.
func TestNothingToCheck(t *testing.T) {
	target := Targeted{Wanted: &Wanted{}, Err: errors.New("no options")}
	plan, asked := Plan{}, map[CheckID]bool{}
	plan.check(Snapshot{Validate: true}, &target, nil, asked)
	now := &fleet.BundleDeployment{}
	now.DeletionTimestamp = &metav1.Time{}
	plan.check(Snapshot{Validate: true}, &Targeted{Wanted: &Wanted{DeploymentID: "x"}}, now, asked)
	if len(plan.Checks)+plan.Unchecked > 0 || target.held {
		t.Errorf("asks for %v", plan.Checks)
	}
}
