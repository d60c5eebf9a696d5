package parent

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status/statustest"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// No status outgrows 256 KiB, whatever agents report, in names and texts of any length and of any characters, of which
// JSON writes some in six bytes.
func TestNoReportMakesAStatusTooLarge(t *testing.T) {
	for name, unit := range map[string]string{
		"letters": "x", "brackets": "<", "control characters": "\x01", "broken": "\xff", "wide": "🚢",
	} {
		t.Run(name, func(t *testing.T) {
			long, text := strings.Repeat(unit, 1<<10), strings.Repeat(unit, 64<<10)
			x, bd := tally.NewIndex(), &fleet.BundleDeployment{}
			bd.Labels = map[string]string{fleet.BundleNamespaceLabel: "ws", fleet.BundleLabel: "b", fleet.ClusterNamespaceLabel: strings.Repeat("n", 63), fleet.RepoLabel: "repo"}
			bd.Spec.DeploymentID, bd.Spec.StagedDeploymentID, bd.Status.AppliedDeploymentID = "s-1:o", "s-1:o", "s-1:o"
			for range 10 {
				bd.Status.ModifiedStatus = append(bd.Status.ModifiedStatus, fleet.ModifiedStatus{Kind: long, APIVersion: long, Namespace: long, Name: long, Patch: long})
				bd.Status.NonReadyStatus = append(bd.Status.NonReadyStatus, fleet.NonReadyStatus{UID: long, Kind: long, APIVersion: long, Namespace: long, Name: long,
					Summary: fleet.ObjectSummary{State: long, Error: true, Message: []string{long}}})
			}
			for i := range 305 {
				cluster := fmt.Sprintf("%0253d", i)
				one := bd.DeepCopy()
				one.Labels[fleet.ClusterLabel] = cluster
				one.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionMonitored, Status: corev1.ConditionFalse, Message: cluster + text}}
				one.Status.Resources = []fleet.BundleDeploymentResource{{Kind: "Pod", APIVersion: "v1", Namespace: fmt.Sprint(i%20) + long, Name: fmt.Sprint(i%30) + long}}
				x.Set(tally.Ref{Namespace: cluster, Name: "b"}, tally.Trim(one))
			}
			repo := tally.Parent{Kind: tally.KindGitRepo, Ref: tally.Ref{Namespace: "ws", Name: "repo"}}
			source := Source(SourceInput{Rollup: x.Of(repo), Resources: x.Resources(repo), PerCluster: x.PerCluster(repo)}, noon)
			bookkeeping := 0
			for key := range source.PerClusterResourceCounts {
				bookkeeping += len(key) + 180
			}
			var cluster fleet.ClusterStatus
			rollup := x.Cluster(strings.Repeat("n", 63), fmt.Sprintf("%0253d", 1))
			ApplyCluster(&cluster, rollup, Liveness{}, noon)
			partitions := make([]fleet.PartitionStatus, 300)
			for i := range partitions {
				partitions[i] = fleet.PartitionStatus{Name: long, Count: 1, Summary: fleet.BundleSummary{ErrApplied: 1000, DesiredReady: 1000}}
			}
			held := make([]Held, 300)
			for i := range held {
				held[i] = Held{Name: fmt.Sprintf("ws/%0253d", i), Message: text}
			}
			bundle := Bundle(BundleInput{Rollup: x.Bundle("ws", "b"), Rollout: &Rollout{Partitions: partitions}, Problems: []string{text, text, text, text}, Held: held}, noon)
			stuck := Bundle(BundleInput{Rollup: x.Bundle("ws", "b"), Rollout: &Rollout{Partitions: partitions}}, noon)
			group := ClusterGroup(fleet.ClusterGroupStatus{}, []GroupMember{{Name: "a", Rollup: rollup}, {Name: "b", Rollup: rollup}}, noon)
			for kind, status := range map[string]any{"GitRepo": source, "Cluster": cluster, "Bundle": bundle, "Bundle without held": stuck, "ClusterGroup": group} {
				size := len(mustJSON(t, status))
				if kind == "GitRepo" {
					size += bookkeeping
				}
				t.Logf("%s: %d KiB", kind, size>>10)
				if size > 240<<10 {
					t.Errorf("%s: %d bytes", kind, size)
				}
			}
			if len(source.PerClusterResourceCounts) < 100 || len(source.Resources) == 0 || len(bundle.Summary.NonReadyResources) != tally.MaxNonReady {
				t.Errorf("%d clusters, %d objects, %d that are not ready", len(source.PerClusterResourceCounts), len(source.Resources), len(bundle.Summary.NonReadyResources))
			}
		})
	}
}

func TestPartitionsThatAreNotShown(t *testing.T) {
	all := make([]fleet.PartitionStatus, maxPartitions+20)
	for i := range all {
		all[i] = fleet.PartitionStatus{Name: strconv.Itoa(i), Count: 3, MaxUnavailable: 2, Unavailable: 1, Summary: fleet.BundleSummary{Ready: 2, ErrApplied: 1, DesiredReady: 3}}
	}
	if shown := shownPartitions(all[:maxPartitions]); !reflect.DeepEqual(shown, all[:maxPartitions]) {
		t.Errorf("%+v", shown)
	}
	shown := shownPartitions(all)
	want := fleet.PartitionStatus{Name: "21 more", Count: 63, MaxUnavailable: 42, Unavailable: 21, Summary: fleet.BundleSummary{Ready: 42, ErrApplied: 21, DesiredReady: 63}}
	if last := shown[maxPartitions-1]; len(shown) != maxPartitions || !reflect.DeepEqual(last, want) {
		t.Errorf("%d, the last is %+v", len(shown), last)
	}
}

// No status outgrows 256 KiB with 3,000 clusters that all fail with long messages.
func TestStatusesStaySmall(t *testing.T) {
	x := tally.NewIndex()
	var members []GroupMember
	for c := range 3000 {
		for b := range 2 {
			bd := statustest.Failing(fmt.Sprintf("bundle-%d", b), fmt.Sprintf("cluster-with-a-name-%04d", c), 40)
			x.Set(keyOf(bd), tally.Trim(bd))
		}
	}
	for c := range 3000 {
		name := fmt.Sprintf("cluster-with-a-name-%04d", c)
		members = append(members, GroupMember{Name: name, Rollup: x.Cluster("ws", name)})
	}
	repo := tally.Parent{Kind: tally.KindGitRepo, Ref: tally.Ref{Namespace: "ws", Name: "repo"}}
	source := Source(SourceInput{Rollup: x.Of(repo), Resources: x.Resources(repo), PerCluster: x.PerCluster(repo)}, noon)
	var cluster fleet.ClusterStatus
	ApplyCluster(&cluster, members[0].Rollup, Liveness{}, noon)
	partitions := make([]fleet.PartitionStatus, 3000)
	for i := range partitions {
		partitions[i] = fleet.PartitionStatus{Name: fmt.Sprintf("Partition %d - %d", i, i+1), Count: 1}
	}
	bundle := Bundle(BundleInput{Rollup: x.Bundle("ws", "bundle-0"), Rollout: &Rollout{Partitions: partitions}, Problems: []string{strings.Repeat("x", 5000), strings.Repeat("y", 5000)}}, noon)
	for name, status := range map[string]any{
		"GitRepo": source, "Bundle": bundle, "Cluster": cluster, "ClusterGroup": ClusterGroup(fleet.ClusterGroupStatus{}, members, noon),
	} {
		data, err := json.Marshal(status)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d KiB", name, len(data)>>10)
		// The keys of perClusterResourceCounts appear once more in managedFields.
		if limit := 170 << 10; len(data) > limit {
			t.Errorf("%s: %d bytes, want at most %d", name, len(data), limit)
		}
	}
	if len(source.Resources) == 0 || len(source.PerClusterResourceCounts) != 300 || source.DesiredReadyClusters != 3000 {
		t.Errorf("%d resources, %d clusters of %d", len(source.Resources), len(source.PerClusterResourceCounts), source.DesiredReadyClusters)
	}
}

// One cluster's agent must not be able to make what others share too large to store, or wrong for them.
func TestHostileReportsInRollup(t *testing.T) {
	index := tally.NewIndex()
	for i := range 20 {
		bd := statustest.Hostile("app", "evil-"+strconv.Itoa(i))
		record := tally.Trim(bd)
		if record.State != fleet.ErrApplied || len(record.Message) > tally.MaxRecordText {
			t.Fatalf("state %s, message of %d bytes", record.State, len(record.Message))
		}
		index.Set(tally.Ref{Namespace: "cluster-evil-" + strconv.Itoa(i), Name: "app"}, record)
	}
	good := statustest.Hostile("app", "good")
	good.Status = fleet.BundleDeploymentStatus{DeploymentPartStatus: fleet.DeploymentPartStatus{
		AppliedDeploymentID: "s-1:o", Ready: true, NonModified: true, ResourceCounts: fleet.ResourceCounts{Ready: 3, DesiredReady: 3},
		Resources: []fleet.BundleDeploymentResource{{Kind: "ConfigMap", APIVersion: "v1", Namespace: "n", Name: "forged\x1f\x1e"}},
	}}
	index.Set(tally.Ref{Namespace: "cluster-good", Name: "app"}, tally.Trim(good))
	now := time.Unix(0, 0)
	bundle := Bundle(BundleInput{Rollup: index.Bundle("ws", "app")}, now)
	repo := tally.Parent{Kind: tally.KindGitRepo, Ref: tally.Ref{Namespace: "ws", Name: "repo"}}
	source := Source(SourceInput{Rollup: index.Of(repo), Resources: index.Resources(repo), PerCluster: index.PerCluster(repo)}, now)
	if bundle.Summary.Ready != 1 || bundle.Summary.ErrApplied != 20 || bundle.Summary.DesiredReady != 21 {
		t.Errorf("summary %+v", bundle.Summary)
	}
	if c := source.ResourceCounts; c.Ready != 3 || c.NotReady != 0 || c.DesiredReady != 3+20*100_000 {
		t.Errorf("counts %+v", c)
	}
	for name, size := range map[string]int{"Bundle": len(mustJSON(t, bundle)), "GitRepo": len(mustJSON(t, source))} {
		if size > 512<<10 {
			t.Errorf("the status of the %s has %d bytes", name, size)
		}
	}
	cluster := fleet.ClusterStatus{}
	ApplyCluster(&cluster, index.Cluster("ws", "good"), Liveness{}, now)
	if cluster.Display.ReadyBundles != "1/1" || cluster.Display.State != "" {
		t.Errorf("the good cluster: %+v", cluster.Display)
	}
	if own := index.Resources(tally.Parent{Kind: tally.KindCluster, Ref: tally.Ref{Namespace: "ws", Name: "good"}}); len(own) != 1 || own[0].Name != "forged" {
		t.Errorf("objects %+v", own)
	}
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
