package gauges

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// gather returns the value of every series, by name and the values of its labels.
func gather(t *testing.T, reader client.Reader) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(New(reader))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			series[nameOf(family, metric)] = metric.GetGauge().GetValue()
		}
	}
	return series
}

func nameOf(family *dto.MetricFamily, metric *dto.Metric) string {
	labels := map[string]string{}
	for _, label := range metric.GetLabel() {
		labels[label.GetName()] = label.GetValue()
	}
	return strings.TrimRight(family.GetName()+" "+labels["name"]+" "+labels["state"]+labels["phase"], " ")
}

func TestCollect(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "shop"}}
	repo.Status.ReadyClusters, repo.Status.DesiredReadyClusters = 2, 3
	repo.Status.ResourceCounts = fleet.ResourceCounts{Ready: 5, DesiredReady: 7, WaitApplied: 2}
	good := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "good"}}
	good.Status.Summary = fleet.BundleSummary{Ready: 4, DesiredReady: 4}
	bad := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "bad"}}
	bad.Status.Rollout, bad.Status.Unavailable, bad.Status.MaxUnavailable = &fleet.RolloutStatus{Phase: fleet.RolloutHalted}, 2, 1
	bad.Status.Summary = fleet.BundleSummary{Ready: 1, ErrApplied: 2, DesiredReady: 3}
	member := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "north"}}
	member.Status.Display.State, member.Status.ReadyGitRepos = "WaitCheckIn", 1
	group := &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "all"}}
	group.Status.ClusterCount, group.Status.NonReadyClusterCount = 9, 1

	series := gather(t, fake.NewClientBuilder().WithScheme(scheme).WithObjects(repo, good, bad, member, group).Build())
	for name, want := range map[string]float64{
		"fleet_gitrepo_ready_clusters shop":                     2,
		"fleet_gitrepo_resources_wait_applied shop":             2,
		"fleet_bundle_ready good Ready":                         4,
		"fleet_bundle_err_applied bad ErrApplied":               2,
		"fleet_bundle_state good Ready":                         1,
		"fleet_bundle_state bad ErrApplied":                     1,
		"fleet_bundle_state bad Ready":                          0,
		"fleet_bundledeployments  Ready":                        5,
		"fleet_bundledeployments  ErrApplied":                   2,
		"fleet_bundledeployments  Modified":                     0,
		"fleet_bundle_rollout_phase bad Halted":                 1,
		"fleet_bundle_unavailable bad":                          2,
		"fleet_bundle_max_unavailable bad":                      1,
		"fleet_rollouts  Halted":                                1,
		"fleet_rollouts  Progressing":                           0,
		"fleet_cluster_ready_git_repos north WaitCheckIn":       1,
		"fleet_cluster_state north WaitCheckIn":                 1,
		"fleet_cluster_state north Ready":                       0,
		"fleet_cluster_group_cluster_count all Ready":           9,
		"fleet_cluster_group_non_ready_cluster_count all Ready": 1,
	} {
		if got, there := series[name]; !there || got != want {
			t.Errorf("%s is %v (%v), want %v", name, got, there, want)
		}
	}
	if _, there := series["fleet_bundle_unavailable good"]; there {
		t.Error("a bundle that was never planned has a rollout")
	}
}

// broken is a reader before its caches are there.
type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("not started")
}

func TestNothingIsToldBeforeItIsKnown(t *testing.T) {
	if series := gather(t, broken{}); len(series) > 0 {
		t.Errorf("told: %v", series)
	}
}

// docs/metrics.md names every metric of this package.
func TestMetricsAreDocumented(t *testing.T) {
	documented, err := os.ReadFile("../../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	descs := make(chan *prometheus.Desc, 100)
	New(broken{}).Describe(descs)
	close(descs)
	for desc := range descs {
		name := strings.Split(desc.String(), "\"")[1]
		if !strings.Contains(string(documented), "`"+name+"`") {
			t.Errorf("%s is not documented", name)
		}
	}
}
