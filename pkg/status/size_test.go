package status

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// No status outgrows 256 KiB, whatever agents report, in names and texts of any length and of any characters, of which
// JSON writes some in six bytes.
func TestNoReportMakesAStatusTooLarge(t *testing.T) {
	for name, unit := range map[string]string{
		"letters": "x", "brackets": "<", "control characters": "\x01", "broken": "\xff", "wide": "🚢",
	} {
		t.Run(name, func(t *testing.T) {
			long, text := strings.Repeat(unit, 1<<10), strings.Repeat(unit, 64<<10)
			x, bd := NewIndex(), &fleet.BundleDeployment{}
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
				x.Set(Ref{cluster, "b"}, Trim(one))
			}
			repo := Parent{KindGitRepo, Ref{"ws", "repo"}}
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
			if len(source.PerClusterResourceCounts) < 100 || len(source.Resources) == 0 || len(bundle.Summary.NonReadyResources) != maxNonReady {
				t.Errorf("%d clusters, %d objects, %d that are not ready", len(source.PerClusterResourceCounts), len(source.Resources), len(bundle.Summary.NonReadyResources))
			}
		})
	}
}

func TestPartitionsThatAreNotShown(t *testing.T) {
	all := make([]fleet.PartitionStatus, maxPartitions+20)
	for i := range all {
		all[i] = fleet.PartitionStatus{Name: itoa(i), Count: 3, MaxUnavailable: 2, Unavailable: 1, Summary: fleet.BundleSummary{Ready: 2, ErrApplied: 1, DesiredReady: 3}}
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

func TestCut(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short":             {"abc", 3, "abc"},
		"long":              {"abcdef", 5, "ab…"},
		"between letters":   {"aüüü", 6, "aü…"},
		"escaped":           {"<<<<", 24, "<<<<"},
		"escaped, too long": {"<<<<", 23, "<<<…"},
		"escape in two":     {"\n\n\n", 5, "\n…"},
		"broken":            {"a\xff\xff", 12, "a\xff…"},
		"a mark":            {"a\ufffdb", 4, "a…"},
		"nothing fits":      {"<<<", 4, "…"},
	} {
		got := Cut(test.text, test.limit)
		if got != test.want {
			t.Errorf("%s: %q", name, got)
		}
		text, err := json.Marshal(got)
		if err != nil || len(text)-2 > test.limit {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		if again := Cut(got, test.limit); again != got {
			t.Errorf("%s: cut again it is %q", name, again)
		}
	}
}

func FuzzCost(f *testing.F) {
	f.Add("a<b>&\"\\\x00\x7f\u2028\xff\ufffd🚢\b\f\n")
	f.Fuzz(func(t *testing.T, text string) {
		written := mustJSON(t, text)
		if got := cost(text); got != len(written)-2 {
			t.Errorf("%q costs %d, and is written as %s", text, got, written)
		}
	})
}
