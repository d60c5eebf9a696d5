package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

func stored(phase fleet.ClusterPhase, lastSeen time.Time) *fleet.Cluster {
	return &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "meadow"},
		Status:     fleet.ClusterStatus{Phase: phase, Agent: fleet.AgentStatus{LastSeen: metav1.NewTime(lastSeen)}},
	}
}

func TestStatus(t *testing.T) {
	failing := &tally.Rollup{Summary: fleet.BundleSummary{Ready: 1, ErrApplied: 1, DesiredReady: 2,
		NonReadyResources: []fleet.NonReadyResource{{Name: "app", State: fleet.ErrApplied, Message: "boom"}}}}
	cases := map[string]struct {
		cluster     *fleet.Cluster
		heartbeat   Heartbeat
		rollup      *tally.Rollup
		problem     error
		wantPhase   fleet.ClusterPhase
		wantState   string
		wantError   bool
		wantReady   corev1.ConditionStatus
		wantAvail   corev1.ConditionStatus
		wantProcess corev1.ConditionStatus
	}{
		"new":            {stored("", time.Time{}), Heartbeat{}, nil, nil, fleet.ClusterPending, "WaitCheckIn", false, "False", "False", "True"},
		"healthy":        {stored(fleet.ClusterReady, noon), Heartbeat{Seen: noon, Fresh: 3}, nil, nil, fleet.ClusterReady, "", false, "True", "True", "True"},
		"failing bundle": {stored(fleet.ClusterReady, noon), Heartbeat{Seen: noon, Fresh: 3}, failing, nil, fleet.ClusterReady, "ErrApplied", false, "False", "True", "True"},
		"silent":         {stored(fleet.ClusterReady, noon), Heartbeat{Seen: noon.Add(-time.Minute), Fresh: 3}, failing, nil, fleet.ClusterNotReady, "Disconnected", true, "False", "False", "True"},
		"lost":           {stored(fleet.ClusterNotReady, noon), Heartbeat{Seen: noon.Add(-time.Hour), Fresh: 3}, nil, nil, fleet.ClusterUnknown, "Disconnected", true, "False", "False", "True"},
		"no namespace": {stored("", time.Time{}), Heartbeat{}, nil, fault.New(fault.Stalled, "NameTaken", "taken"),
			fleet.ClusterPending, "WaitCheckIn", false, "False", "False", "False"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := Snapshot{Cluster: c.cluster, Namespace: "cluster-ns", Problem: c.problem, Heartbeat: c.heartbeat,
				Report: &Report{}, Rollup: c.rollup, Now: noon, LastSeenEvery: 5 * time.Minute}
			got := Status(snapshot)
			if got.Phase != c.wantPhase || got.Display.State != c.wantState || got.Display.Error != c.wantError {
				t.Errorf("phase %s, display %+v; want %s, state %q", got.Phase, got.Display, c.wantPhase, c.wantState)
			}
			for kind, want := range map[string]corev1.ConditionStatus{
				fleet.ConditionReady: c.wantReady, fleet.ConditionAvailable: c.wantAvail, fleet.ConditionProcessed: c.wantProcess,
			} {
				condition := status.Find(got.Conditions, kind)
				if condition == nil || condition.Status != want {
					t.Errorf("%s is %v, want %s", kind, condition, want)
				} else if want == "False" && condition.Message == "" {
					t.Errorf("%s has no message", kind)
				}
			}
			again := snapshot
			again.Cluster = c.cluster.DeepCopy()
			again.Cluster.Status = got
			again.Now = noon.Add(time.Second)
			if diff := cmp.Diff(got, Status(again)); diff != "" {
				t.Errorf("a second look changes the status:\n%s", diff)
			}
		})
	}
}

func TestLastSeenIsWrittenSeldom(t *testing.T) {
	cases := map[string]struct {
		phase    fleet.ClusterPhase
		stored   time.Time
		seen     time.Time
		fresh    int
		noReport bool
		want     time.Time
	}{
		"first":                      {fleet.ClusterPending, time.Time{}, noon, 1, false, noon},
		"a renewal is no news":       {fleet.ClusterReady, noon.Add(-time.Minute), noon, 4, false, noon.Add(-time.Minute)},
		"after five minutes":         {fleet.ClusterReady, noon.Add(-5 * time.Minute), noon, 4, false, noon},
		"back":                       {fleet.ClusterUnknown, noon.Add(-time.Minute), noon, 2, false, noon},
		"one renewal while down":     {fleet.ClusterUnknown, noon.Add(-time.Minute), noon, 1, false, noon.Add(-time.Minute)},
		"hub started, nothing heard": {fleet.ClusterReady, noon.Add(-time.Hour), noon, 0, false, noon.Add(-time.Hour)},
		"upstream's writes its own":  {fleet.ClusterPending, noon.Add(-time.Hour), noon.Add(-time.Hour), 2, true, noon.Add(-time.Hour)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			snapshot := Snapshot{Cluster: stored(c.phase, c.stored), Namespace: "n", Report: &Report{},
				Heartbeat: Heartbeat{Seen: c.seen, Interval: 15 * time.Second, Fresh: c.fresh}, Now: noon, LastSeenEvery: 5 * time.Minute}
			if c.noReport {
				snapshot.Report = nil
			}
			if got := Status(snapshot).Agent.LastSeen.Time; !got.Equal(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestLastSeenIsOnlyWrittenOnComingAndGoingByDefault(t *testing.T) {
	for phase, want := range map[fleet.ClusterPhase]time.Time{
		fleet.ClusterReady:   noon.Add(-time.Hour),
		fleet.ClusterUnknown: noon,
	} {
		snapshot := Snapshot{Cluster: stored(phase, noon.Add(-time.Hour)), Namespace: "n", Report: &Report{}, Now: noon,
			Heartbeat: Heartbeat{Seen: noon, Interval: 15 * time.Second, Fresh: 4}}
		if got := Status(snapshot).Agent.LastSeen.Time; !got.Equal(want) {
			t.Errorf("%s: last seen %v, want %v", phase, got, want)
		}
	}
}

func TestStoredNumbersStayUntilAllIsCounted(t *testing.T) {
	cluster := stored(fleet.ClusterReady, noon)
	cluster.Status.Summary = fleet.BundleSummary{Ready: 3, DesiredReady: 4, NotReady: 1}
	cluster.Status.ReadyGitRepos, cluster.Status.DesiredReadyGitRepos = 1, 2
	got := Status(Snapshot{Cluster: cluster, Namespace: "n", Heartbeat: Heartbeat{Seen: noon, Fresh: 2}, Now: noon})
	if got.Summary.Ready != 3 || got.DesiredReadyGitRepos != 2 || got.Display.ReadyBundles != "3/4" {
		t.Errorf("got %+v", got)
	}
	got = Status(Snapshot{Cluster: cluster, Namespace: "n", Heartbeat: Heartbeat{Seen: noon, Fresh: 2}, Now: noon, Rollup: &tally.Rollup{}})
	if got.Summary.Ready != 0 || got.DesiredReadyGitRepos != 0 || got.Display.ReadyBundles != "0/0" {
		t.Errorf("counted: got %+v", got)
	}
}

func TestReportOf(t *testing.T) {
	got := ReportOf(map[string]string{
		"fleet.cattle.io/agent-version": "v1", "fleet.cattle.io/protocol-version": "2", "fleet.cattle.io/agent-namespace": "ns",
	})
	want := Report{Versions: fleet.ClusterVersions{Agent: "v1", Protocol: 2}, AgentNamespace: "ns"}
	if got != want {
		t.Errorf("got %+v", got)
	}
	want.Versions.Kubernetes = "v1.37"
	if got := ReportOf(want.Annotations()); got != want {
		t.Errorf("read back as %+v", got)
	}
	if got := ReportOf(map[string]string{"fleet.cattle.io/protocol-version": "x"}); got != (Report{}) {
		t.Errorf("got %+v", got)
	}
}

func TestOwnerOf(t *testing.T) {
	namespace := Namespace(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "meadow"}})
	if ns, name, ok := OwnerOf(namespace); !ok || ns != "ws" || name != "meadow" {
		t.Errorf("got %s/%s, %v", ns, name, ok)
	}
	forged := namespace.DeepCopy()
	forged.Name = "mine"
	if _, _, ok := OwnerOf(forged); ok {
		t.Error("a namespace of another name passes for a cluster's")
	}
	if _, _, ok := OwnerOf(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.ClusterNamespace("", "")}}); ok {
		t.Error("a namespace of nobody passes for a cluster's")
	}
}

func TestLabels(t *testing.T) {
	got := Labels(map[string]string{
		"env": "dev", "example.com/region": "eu", fleet.AgentPodLabel: "pod",
		"fleet.cattle.io/managed": "true", "management.cattle.io/cluster-name": "x", "a.fleet.cattle.io/b": "c",
		"myfleet.cattle.io/kept": "1", "bad key": "x", "value": "not a label value!",
	})
	want := map[string]string{"env": "dev", "example.com/region": "eu", fleet.AgentPodLabel: "pod", "myfleet.cattle.io/kept": "1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := Labels(nil); len(got) != 0 {
		t.Errorf("nothing became %v", got)
	}
}

func TestGroupStatus(t *testing.T) {
	member := func(name string, phase fleet.ClusterPhase, ready, desired int) fleet.Cluster {
		return fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: fleet.ClusterStatus{Phase: phase,
			Summary: fleet.BundleSummary{Ready: ready, DesiredReady: desired, NotReady: desired - ready}, ResourceCounts: fleet.ResourceCounts{Ready: ready}}}
	}
	members := []fleet.Cluster{member("c", fleet.ClusterReady, 1, 2), member("a", fleet.ClusterReady, 2, 2), member("b", fleet.ClusterUnknown, 2, 2)}
	got := GroupStatus(&fleet.ClusterGroup{}, members, nil, noon)
	if got.ClusterCount != 3 || got.NonReadyClusterCount != 2 || got.Display.ReadyClusters != "1/3 (b,c)" || got.Display.ReadyBundles != "5/6" || got.ResourceCounts.Ready != 5 {
		t.Errorf("got %+v", got)
	}
	if !status.IsTrue(got.Conditions, fleet.ConditionProcessed) || status.IsTrue(got.Conditions, fleet.ConditionReady) {
		t.Errorf("conditions %v", got.Conditions)
	}
	members[0], members[1] = members[1], members[0]
	if diff := cmp.Diff(got, GroupStatus(&fleet.ClusterGroup{Status: got}, members, nil, noon.Add(time.Hour))); diff != "" {
		t.Errorf("another order changes the status:\n%s", diff)
	}
}
