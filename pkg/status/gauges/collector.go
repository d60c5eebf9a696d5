package gauges

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// family is the metrics of one kind: they have the same labels.
type family struct {
	prefix string
	labels []string
	// names are without prefix, in the order in which values are given.
	names []string
	descs []*prometheus.Desc
}

func newFamily(prefix, what string, labels, names []string) *family {
	f := &family{prefix: prefix, labels: labels, names: names}
	for _, name := range names {
		f.descs = append(f.descs, prometheus.NewDesc(prefix+name, what+", as the status says: "+strings.ReplaceAll(name, "_", " ")+".", labels, nil))
	}
	return f
}

// send tells the values of one object, in the order of the names.
func (f *family) send(to chan<- prometheus.Metric, labels []string, values ...int) {
	shared := prometheus.MakeLabelPairs(f.descs[0], labels)
	for i, value := range values {
		to <- &gauge{desc: f.descs[i], labels: shared, value: float64(value)}
	}
}

// gauge is one value. Those of an object share its labels, of which there are many more than values.
type gauge struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  float64
}

// Desc names the metric.
func (g *gauge) Desc() *prometheus.Desc { return g.desc }

// Write tells the value.
func (g *gauge) Write(to *dto.Metric) error {
	to.Label, to.Gauge = g.labels, &dto.Gauge{Value: &g.value}
	return nil
}

// states are those of deployments and of everything they are rolled up into.
var states = []fleet.BundleState{fleet.Ready, fleet.NotReady, fleet.Pending, fleet.OutOfSync, fleet.Modified, fleet.WaitApplied, fleet.ErrApplied}

// Collector is the metrics of all objects a reader knows.
type Collector struct {
	reader                          client.Reader
	repos, bundles, clusters, group *family
	bundleState, clusterState       *prometheus.Desc
	groupState, deployments         *prometheus.Desc
	rollout                         *family
	rolloutPhase, rollouts          *prometheus.Desc
}

// New returns a collector that reads from a cache.
func New(reader client.Reader) *Collector {
	ofBundle := []string{"name", "namespace", "commit", "repo", "generation", "state"}
	ofCluster := []string{"name", "namespace", "cluster_name", "cluster_display_name", "generation", "state"}
	ofGroup := []string{"name", "namespace", "generation", "state"}
	return &Collector{
		reader: reader,
		repos: newFamily("fleet_gitrepo_", "A GitRepo", []string{"name", "namespace", "repo", "branch", "paths"}, []string{
			"desired_ready_clusters", "ready_clusters", "resources_desired_ready", "resources_missing", "resources_modified",
			"resources_not_ready", "resources_orphaned", "resources_ready", "resources_unknown", "resources_wait_applied",
		}),
		bundles: newFamily("fleet_bundle_", "A Bundle", ofBundle, []string{
			"desired_ready", "ready", "not_ready", "pending", "out_of_sync", "modified", "wait_applied", "err_applied",
		}),
		clusters: newFamily("fleet_cluster_", "A Cluster", ofCluster, []string{
			"desired_ready_git_repos", "ready_git_repos", "desired_ready_helm_ops", "ready_helm_ops",
			"resources_count_desiredready", "resources_count_missing", "resources_count_modified", "resources_count_notready",
			"resources_count_orphaned", "resources_count_ready", "resources_count_unknown", "resources_count_waitapplied",
		}),
		group: newFamily("fleet_cluster_group_", "A ClusterGroup", ofGroup, []string{
			"cluster_count", "non_ready_cluster_count", "bundle_desired_ready", "bundle_ready",
			"resource_count_desired_ready", "resource_count_missing", "resource_count_modified", "resource_count_notready",
			"resource_count_orphaned", "resource_count_ready", "resource_count_unknown", "resource_count_waitapplied",
		}),
		bundleState:  prometheus.NewDesc("fleet_bundle_state", "1 for the state a Bundle is in, 0 for the others.", ofBundle, nil),
		clusterState: prometheus.NewDesc("fleet_cluster_state", "1 for the state a Cluster is in, 0 for the others.", ofCluster, nil),
		groupState:   prometheus.NewDesc("fleet_cluster_group_state", "1 for the state a ClusterGroup is in, 0 for the others.", ofGroup, nil),
		rollout: newFamily("fleet_bundle_", "The rollout of a Bundle", []string{"name", "namespace"}, []string{
			"unavailable", "max_unavailable", "unavailable_partitions", "max_unavailable_partitions",
		}),
		rolloutPhase: prometheus.NewDesc("fleet_bundle_rollout_phase", "1 for the phase of a Bundle's rollout; there is no series for the others.", []string{"name", "namespace", "phase"}, nil),
		rollouts:     prometheus.NewDesc("fleet_rollouts", "Bundles by the phase of their rollout.", []string{"phase"}, nil),
		deployments:  prometheus.NewDesc("fleet_bundledeployments", "BundleDeployments by state, those that are still to be made included.", []string{"state"}, nil),
	}
}

// Describe names all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range []*family{c.repos, c.bundles, c.rollout, c.clusters, c.group} {
		for _, desc := range f.descs {
			to <- desc
		}
	}
	for _, desc := range []*prometheus.Desc{c.bundleState, c.clusterState, c.groupState, c.deployments, c.rolloutPhase, c.rollouts} {
		to <- desc
	}
}

// Collect tells all values. What cannot be read, as before the caches are filled, is left out.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	ctx := context.Background()
	c.collectRepos(ctx, to)
	c.collectBundles(ctx, to)
	c.collectClusters(ctx, to)
	c.collectGroups(ctx, to)
}

func (c *Collector) list(ctx context.Context, list client.ObjectList) bool {
	return c.reader.List(ctx, list, client.UnsafeDisableDeepCopy) == nil
}

func (c *Collector) collectRepos(ctx context.Context, to chan<- prometheus.Metric) {
	var list fleet.GitRepoList
	if !c.list(ctx, &list) {
		return
	}
	for i := range list.Items {
		repo := &list.Items[i]
		n := &repo.Status.ResourceCounts
		labels := []string{repo.Name, repo.Namespace, repo.Spec.Repo, repo.Spec.Branch, strings.Join(repo.Spec.Paths, ";")}
		c.repos.send(to, labels, repo.Status.DesiredReadyClusters, repo.Status.ReadyClusters,
			n.DesiredReady, n.Missing, n.Modified, n.NotReady, n.Orphaned, n.Ready, n.Unknown, n.WaitApplied)
	}
}

func (c *Collector) collectBundles(ctx context.Context, to chan<- prometheus.Metric) {
	var list fleet.BundleList
	if !c.list(ctx, &list) {
		return
	}
	var all fleet.BundleSummary
	for i := range list.Items {
		bundle := &list.Items[i]
		s := &bundle.Status.Summary
		labels := []string{
			bundle.Name, bundle.Namespace, bundle.Labels[fleet.CommitLabel], bundle.Labels[fleet.RepoLabel],
			strconv.FormatInt(bundle.Generation, 10), string(status.WorstOf(s)),
		}
		c.bundles.send(to, labels, s.DesiredReady, s.Ready, s.NotReady, s.Pending, s.OutOfSync, s.Modified, s.WaitApplied, s.ErrApplied)
		sendState(to, c.bundleState, labels)
		for _, each := range states {
			status.Count(&all, each, status.CountOf(s, each))
		}
	}
	for _, each := range states {
		to <- prometheus.MustNewConstMetric(c.deployments, prometheus.GaugeValue, float64(status.CountOf(&all, each)), string(each))
	}
	c.collectRollouts(list.Items, to)
}

// phases are those of rollouts.
var phases = []fleet.RolloutPhase{fleet.RolloutProgressing, fleet.RolloutComplete, fleet.RolloutHalted}

// collectRollouts tells how far bundles are that were planned.
func (c *Collector) collectRollouts(bundles []fleet.Bundle, to chan<- prometheus.Metric) {
	counts := map[fleet.RolloutPhase]int{}
	for i := range bundles {
		bundle, s := &bundles[i], &bundles[i].Status
		if s.Rollout == nil || s.Rollout.Phase == "" {
			continue
		}
		counts[s.Rollout.Phase]++
		c.rollout.send(to, []string{bundle.Name, bundle.Namespace}, s.Unavailable, s.MaxUnavailable, s.UnavailablePartitions, s.MaxUnavailablePartitions)
		to <- prometheus.MustNewConstMetric(c.rolloutPhase, prometheus.GaugeValue, 1, bundle.Name, bundle.Namespace, string(s.Rollout.Phase))
	}
	for _, phase := range phases {
		to <- prometheus.MustNewConstMetric(c.rollouts, prometheus.GaugeValue, float64(counts[phase]), string(phase))
	}
}

// sendState tells 1 for the state that holds and 0 for the others. The state that holds is the last of the labels.
func sendState(to chan<- prometheus.Metric, desc *prometheus.Desc, labels []string) {
	shared := prometheus.MakeLabelPairs(desc, labels)
	to <- &gauge{desc: desc, labels: shared, value: 1}
	at := slices.IndexFunc(shared, func(pair *dto.LabelPair) bool { return pair.GetName() == "state" })
	for _, state := range states {
		if current := labels[len(labels)-1]; string(state) != current {
			others := slices.Clone(shared)
			others[at] = &dto.LabelPair{Name: shared[at].Name, Value: new(string(state))}
			to <- &gauge{desc: desc, labels: others}
		}
	}
}

// Labels by which Rancher names a Cluster.
const (
	clusterNameLabel        = "management.cattle.io/cluster-name"
	clusterDisplayNameLabel = "management.cattle.io/cluster-display-name"
)

func (c *Collector) collectClusters(ctx context.Context, to chan<- prometheus.Metric) {
	var list fleet.ClusterList
	if !c.list(ctx, &list) {
		return
	}
	for i := range list.Items {
		cluster := &list.Items[i]
		s, n := &cluster.Status, &cluster.Status.ResourceCounts
		labels := []string{
			cluster.Name, cluster.Namespace, cluster.Labels[clusterNameLabel], cluster.Labels[clusterDisplayNameLabel],
			strconv.FormatInt(cluster.Generation, 10), cmp.Or(s.Display.State, string(status.WorstOf(&s.Summary))),
		}
		c.clusters.send(to, labels, s.DesiredReadyGitRepos, s.ReadyGitRepos, s.DesiredReadyHelmOps, s.ReadyHelmOps,
			n.DesiredReady, n.Missing, n.Modified, n.NotReady, n.Orphaned, n.Ready, n.Unknown, n.WaitApplied)
		sendState(to, c.clusterState, labels)
	}
}

func (c *Collector) collectGroups(ctx context.Context, to chan<- prometheus.Metric) {
	var list fleet.ClusterGroupList
	if !c.list(ctx, &list) {
		return
	}
	for i := range list.Items {
		group := &list.Items[i]
		s, n := &group.Status, &group.Status.ResourceCounts
		labels := []string{
			group.Name, group.Namespace, strconv.FormatInt(group.Generation, 10), cmp.Or(s.Display.State, string(status.WorstOf(&s.Summary))),
		}
		c.group.send(to, labels, s.ClusterCount, s.NonReadyClusterCount, s.Summary.DesiredReady, s.Summary.Ready,
			n.DesiredReady, n.Missing, n.Modified, n.NotReady, n.Orphaned, n.Ready, n.Unknown, n.WaitApplied)
		sendState(to, c.groupState, labels)
	}
}
