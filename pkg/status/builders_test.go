package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/google/go-cmp/cmp"
	"github.com/rancher/wrangler/v3/pkg/summary"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// steve is what Rancher's API makes of a status.
type steve struct {
	State                string
	Error, Transitioning bool
	Message              string
}

func summarize(t *testing.T, kind string, status any) steve {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"apiVersion": "fleet.cattle.io/v1alpha1", "kind": kind,
		"metadata": map[string]any{"namespace": "ws", "name": "x", "generation": 1},
		"status":   status,
	})
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	summary.NormalizeConditions(object)
	got := summary.Summarize(object)
	return steve{got.State, got.Error, got.Transitioning, strings.Join(got.Message, "; ")}
}

// indexOf counts deployments of bundle b on clusters c0, c1 … in the given states.
func indexOf(states ...fleet.BundleState) *Index {
	x := NewIndex()
	for i, state := range states {
		bd := deployment("b", fmt.Sprintf("c%d", i), state)
		x.Set(keyOf(bd), Trim(bd))
	}
	return x
}

func sourceOf(states ...fleet.BundleState) SourceInput {
	x := indexOf(states...)
	repo := Parent{KindGitRepo, Ref{"ws", "repo"}}
	return SourceInput{Rollup: x.Of(repo), Resources: x.Resources(repo), PerCluster: x.PerCluster(repo)}
}

func gitRepo(in SourceInput) fleet.GitRepoStatus {
	return fleet.GitRepoStatus{ObservedGeneration: 1, StatusBase: Source(in, noon)}
}

// Rancher's dashboard shows our statuses as they are meant.
func TestDashboardReadsOurStatuses(t *testing.T) {
	bundle := func(in BundleInput, states ...fleet.BundleState) fleet.BundleStatus {
		in.Generation, in.Rollup = 1, indexOf(states...).Bundle("ws", "b")
		return Bundle(in, noon)
	}
	cluster := func(live Liveness, states ...fleet.BundleState) fleet.ClusterStatus {
		var status fleet.ClusterStatus
		rollup := indexOf(states...).Cluster("ws", "c0")
		ApplyCluster(&status, rollup, live, noon)
		return status
	}
	failed := sourceOf(fleet.Ready)
	failed.Err = fault.New(fault.Stalled, "BadCredentials", "clone repository: access is denied")
	busy := sourceOf(fleet.Ready)
	busy.Busy = "reading commit 1234567"
	broken := sourceOf(fleet.Ready)
	broken.Bundles = []BundleReadiness{{Name: "z", Ready: &fleet.Condition{Status: corev1.ConditionFalse, Reason: fleet.ReasonError, Message: "zzz"}}, {Name: "a", Ready: &fleet.Condition{Status: corev1.ConditionFalse, Reason: fleet.ReasonError, Message: "no template"}}}
	agent := func(deployed corev1.ConditionStatus, state fleet.BundleState) fleet.BundleDeploymentStatus {
		bd := deployment("b", "c0", state)
		bd.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: deployed, Message: "about the deployment"}}
		bd.Status.Display = Display(bd)
		return bd.Status
	}
	for name, test := range map[string]struct {
		kind   string
		status any
		want   steve
	}{
		"deployment ready":          {"BundleDeployment", agent(corev1.ConditionTrue, fleet.Ready), steve{State: "ready"}},
		"deployment failed":         {"BundleDeployment", agent(corev1.ConditionFalse, fleet.ErrApplied), steve{State: "deploying", Error: true, Message: "about the deployment"}},
		"deployment waits":          {"BundleDeployment", agent(corev1.ConditionUnknown, fleet.ErrApplied), steve{State: "waitapplied"}},
		"bundle ready":              {"Bundle", bundle(BundleInput{}, fleet.Ready, fleet.Ready), steve{State: "active"}},
		"bundle not ready":          {"Bundle", bundle(BundleInput{}, fleet.Ready, fleet.NotReady), steve{State: "notready"}},
		"bundle waits":              {"Bundle", bundle(BundleInput{}, fleet.WaitApplied), steve{State: "waitapplied"}},
		"bundle failed":             {"Bundle", bundle(BundleInput{Err: fault.New(fault.Stalled, "X", "does not parse")}, fleet.Ready), steve{State: "error", Error: true, Message: "does not parse"}},
		"bundle, one cluster":       {"Bundle", bundle(BundleInput{Problems: []string{"cluster ws/c1: no such label"}}, fleet.Ready), steve{State: "error", Error: true, Message: "cluster ws/c1: no such label"}},
		"repo ready":                {"GitRepo", gitRepo(sourceOf(fleet.Ready)), steve{State: "active"}},
		"repo without deployments":  {"GitRepo", gitRepo(SourceInput{}), steve{State: "active"}},
		"repo not ready":            {"GitRepo", gitRepo(sourceOf(fleet.NotReady)), steve{State: "notready", Message: "NotReady(1) [Bundle b]; deployment.apps app/b [progressing] 0 of 1 ready"}},
		"repo modified":             {"GitRepo", gitRepo(sourceOf(fleet.Modified)), steve{State: "modified", Message: `Modified(1) [Bundle b]; configmap app/b-config modified {"data":{"a":"b"}}`}},
		"repo waits":                {"GitRepo", gitRepo(sourceOf(fleet.Ready, fleet.WaitApplied)), steve{State: "waitapplied", Transitioning: true, Message: "WaitApplied(1) [Bundle b]"}},
		"repo failed to apply":      {"GitRepo", gitRepo(sourceOf(fleet.Ready, fleet.ErrApplied)), steve{State: "errapplied", Error: true, Message: "ErrApplied(1) [Bundle b: chart of b does not render]"}},
		"repo cannot be read":       {"GitRepo", gitRepo(failed), steve{State: "errapplied", Error: true, Message: "clone repository: access is denied"}},
		"repo is read":              {"GitRepo", gitRepo(busy), steve{State: "waitapplied", Transitioning: true, Message: "reading commit 1234567"}},
		"repo, first failed bundle": {"GitRepo", gitRepo(broken), steve{State: "errapplied", Error: true, Message: "Bundle a: no template"}},
		"cluster ready":             {"Cluster", cluster(Liveness{}, fleet.Ready), steve{State: "active"}},
		"cluster gone":              {"Cluster", cluster(Liveness{State: StateDisconnected, Message: "agent not heard from since noon"}, fleet.Ready), steve{State: "disconnected", Error: true, Message: "agent not heard from since noon"}},
		"cluster never seen":        {"Cluster", cluster(Liveness{State: StateWaitCheckIn, Message: "agent was never heard from"}), steve{State: "waitcheckin", Message: "agent was never heard from"}},
		"cluster modified":          {"Cluster", cluster(Liveness{}, fleet.Modified), steve{State: "modified"}},
		"group ready":               {"ClusterGroup", ClusterGroup(fleet.ClusterGroupStatus{}, []GroupMember{{Name: "c0", Rollup: indexOf(fleet.Ready).Cluster("ws", "c0")}}, noon), steve{State: "active"}},
		"group with a lost member":  {"ClusterGroup", ClusterGroup(fleet.ClusterGroupStatus{}, []GroupMember{{Name: "c0", NotReady: true}}, noon), steve{State: "notready"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := summarize(t, test.kind, test.status)
			if test.want.Message != "" && strings.Contains(got.Message, test.want.Message) {
				got.Message = test.want.Message
			}
			if test.want.Message == "" && !got.Error {
				got.Message = ""
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Shapes that break Rancher's pages are never written.
func TestShapesOfStatuses(t *testing.T) {
	for _, state := range allStates {
		status := gitRepo(sourceOf(state, fleet.Ready))
		for _, resource := range status.Resources {
			if resource.Kind == "" || resource.State == "" || resource.Type == "" || resource.ID == "" {
				t.Errorf("%s: resource %+v", state, resource)
			}
		}
		data, _ := json.Marshal(status)
		if strings.Count(string(data), `"perClusterState":{`) != len(status.Resources) {
			t.Errorf("%s: a resource has no perClusterState", state)
		}
		conditions := append(status.Conditions, Bundle(BundleInput{Rollup: indexOf(state).Bundle("ws", "b")}, noon).Conditions...)
		for _, condition := range conditions {
			switch {
			case condition.Status == corev1.ConditionUnknown:
				t.Errorf("%s: %s is Unknown", state, condition.Type)
			case condition.Status == corev1.ConditionTrue && condition.Reason != "":
				t.Errorf("%s: %s is True for reason %s", state, condition.Type, condition.Reason)
			case condition.Status == corev1.ConditionFalse && condition.Message == "":
				t.Errorf("%s: %s is False without a message", state, condition.Type)
			}
		}
	}
}

func TestMessage(t *testing.T) {
	s := fleet.BundleSummary{Ready: 5, NotReady: 2, ErrApplied: 1, Modified: 3, Pending: 4, DesiredReady: 15, NonReadyResources: []fleet.NonReadyResource{
		{Name: "ws/c1", State: fleet.ErrApplied, Message: "no chart"},
		{Name: "ws/c2", State: fleet.Modified, ModifiedStatus: []fleet.ModifiedStatus{
			{Kind: "Service", APIVersion: "v1", Namespace: "n", Name: "a", Create: true},
			{Kind: "Service", APIVersion: "v1", Namespace: "n", Name: "b", Create: true, Exist: true},
			{Kind: "Deployment", APIVersion: "apps/v1", Namespace: "n", Name: "c", Delete: true},
			{Kind: "Namespace", APIVersion: "v1", Name: "d", Patch: "{}"},
			{Kind: "Namespace", APIVersion: "v1", Name: "e"},
		}},
		{Name: "ws/c3", State: fleet.NotReady, NonReadyStatus: []fleet.NonReadyStatus{
			{Kind: "Pod", APIVersion: "v1", Namespace: "n", Name: "p", Summary: fleet.ObjectSummary{State: "failed", Error: true, Transitioning: true, Message: []string{"x", "y"}}},
			{Kind: "Pod", APIVersion: "v1", Namespace: "n", Name: "q", Summary: fleet.ObjectSummary{State: "unavailable"}},
		}},
	}}
	want := "ErrApplied(1) [Cluster ws/c1: no chart]; Modified(3) [Cluster ws/c2]; NotReady(2) [Cluster ws/c3]; Pending(4); " +
		"deployment.apps n/c extra; namespace d modified {}; pod n/p [progressing,error] x, y; pod n/q unavailable; service n/a missing; service n/b is not owned by us"
	if got := Message(&s, "Cluster"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Message(&fleet.BundleSummary{Ready: 3, DesiredReady: 3}, "Cluster"); got != "" {
		t.Errorf("all ready: %q", got)
	}
}

func TestConditionTimes(t *testing.T) {
	var list []fleet.Condition
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	stamp := func(minutes int) string { return at(minutes).Format(time.RFC3339) }
	for i, step := range []struct {
		set                        fleet.Condition
		wantChange                 bool
		wantTransition, wantUpdate int
	}{
		{fleet.Condition{Type: "Ready", Status: "False", Message: "a"}, true, 0, 0},
		{fleet.Condition{Type: "Ready", Status: "False", Message: "a"}, false, 0, 0},
		{fleet.Condition{Type: "Ready", Status: "False", Message: "b"}, true, 0, 2},
		{fleet.Condition{Type: "Ready", Status: "True", Reason: "Error"}, true, 3, 3},
		{fleet.Condition{Type: "Ready", Status: "True"}, false, 3, 3},
		{fleet.Condition{Type: "Ready", Status: "Unknown", Message: "c"}, true, 5, 5},
	} {
		if changed := Set(&list, step.set, at(i)); changed != step.wantChange {
			t.Errorf("step %d: changed %v", i, changed)
		}
		got := Find(list, "Ready")
		if got.LastTransitionTime != stamp(step.wantTransition) || got.LastUpdateTime != stamp(step.wantUpdate) {
			t.Errorf("step %d: %+v", i, got)
		}
	}
	if got := list[0]; len(list) != 1 || got.Status != corev1.ConditionFalse {
		t.Errorf("Ready may not be Unknown: %+v", list)
	}
	if !Remove(&list, "Ready") || len(list) != 0 || Remove(&list, "Ready") {
		t.Error("removing")
	}
}

func TestMessagesAreCutBetweenCharacters(t *testing.T) {
	for limit := 3; limit < 12; limit++ {
		got := Cut("äöüßäöüß", limit)
		if len(got) > limit || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	if got := Cut("short", 5); got != "short" {
		t.Errorf("%q", got)
	}
}

// The same input at another time gives the same status: nothing is written.
func TestStatusesAreStable(t *testing.T) {
	later := noon.Add(time.Hour)
	for _, state := range allStates {
		in := BundleInput{Generation: 1, Rollup: indexOf(state, fleet.NotReady).Bundle("ws", "b"), Rollout: &Rollout{Missing: 1}}
		first := Bundle(in, noon)
		in.Previous = first
		if diff := cmp.Diff(first, Bundle(in, later)); diff != "" {
			t.Errorf("bundle: %s", diff)
		}
		source := sourceOf(state, fleet.NotReady)
		one := Source(source, noon)
		source.Previous = one
		if diff := cmp.Diff(one, Source(source, later)); diff != "" {
			t.Errorf("source: %s", diff)
		}
	}
}

func TestBundleKeepsWhatItDoesNotCount(t *testing.T) {
	previous := fleet.BundleStatus{MaxUnavailable: 3, OCIReference: "oci://x", ResourcesSHA256Sum: "abc", PartitionStatus: []fleet.PartitionStatus{{Name: "All"}}}
	got := Bundle(BundleInput{Previous: previous, Generation: 4, Err: errors.New("later")}, noon)
	if got.MaxUnavailable != 3 || got.OCIReference != "oci://x" || len(got.PartitionStatus) != 1 || got.ObservedGeneration != 4 {
		t.Errorf("%+v", got)
	}
	if ready := Find(got.Conditions, "Ready"); ready.Reason != "" || ready.Message != "later" {
		t.Errorf("an error that goes away is no failure: %+v", ready)
	}
	got = Bundle(BundleInput{Rollup: indexOf(fleet.Ready).Bundle("ws", "b"), Rollout: &Rollout{Missing: 2}}, noon)
	if got.Display.ReadyClusters != "1/3" || got.Display.State != "Pending" || got.Summary.Pending != 2 {
		t.Errorf("%+v", got)
	}
}

func TestClusterGroup(t *testing.T) {
	var members []GroupMember
	for i := range 15 {
		state := fleet.Ready
		if i%5 != 0 {
			state = fleet.NotReady
		}
		members = append(members, GroupMember{Name: fmt.Sprintf("c%02d", i), Rollup: indexOf(state).Cluster("ws", "c0")})
	}
	got := ClusterGroup(fleet.ClusterGroupStatus{}, members, noon)
	if got.ClusterCount != 15 || got.NonReadyClusterCount != 12 || len(got.NonReadyClusters) != 10 || len(got.Summary.NonReadyResources) != 10 {
		t.Errorf("%+v", got)
	}
	want := fleet.ClusterGroupDisplay{ReadyClusters: "3/15 (c01,c02,c03,c04,c06,c07,c08,c09,c11,c12)", ReadyBundles: "3/15", State: "NotReady"}
	if diff := cmp.Diff(want, got.Display); diff != "" {
		t.Error(diff)
	}
	if got.ResourceCounts.DesiredReady != 45 || got.ResourceCounts.NotReady != 12 {
		t.Errorf("%+v", got.ResourceCounts)
	}
}

func TestDisplay(t *testing.T) {
	bd := deployment("b", "c", fleet.ErrApplied)
	bd.Status.Conditions[0].Reason = fleet.ReasonError
	bd.Status.Conditions = append(bd.Status.Conditions, fleet.Condition{Type: fleet.ConditionMonitored, Status: corev1.ConditionTrue})
	want := fleet.BundleDeploymentDisplay{Deployed: "Error: chart of b does not render", Monitored: "True", State: "ErrApplied"}
	if diff := cmp.Diff(want, Display(bd)); diff != "" {
		t.Error(diff)
	}
}

// A failure of an earlier version is none of the present one.
func TestStateRightAfterAChange(t *testing.T) {
	for acked, want := range map[string]fleet.BundleState{"": fleet.ErrApplied, "new": fleet.ErrApplied, "old": fleet.WaitApplied} {
		bd := &fleet.BundleDeployment{Spec: fleet.BundleDeploymentSpec{DeploymentPartSpec: fleet.DeploymentPartSpec{DeploymentID: "new", StagedDeploymentID: "new"}}}
		bd.Status.AckedDeploymentID = acked
		bd.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: "no way"}}
		if got := Of(bd); got != want {
			t.Errorf("acknowledged %q: %s, want %s", acked, got, want)
		}
		if got := MessageOf(bd); (got == "no way") != (want == fleet.ErrApplied) {
			t.Errorf("acknowledged %q: message %q", acked, got)
		}
	}
}

// A bundle that cannot be planned waits for a person, and so does its rollout.
func TestRolloutOfABundleThatCannotBePlanned(t *testing.T) {
	previous := fleet.BundleStatus{Rollout: &fleet.RolloutStatus{Phase: fleet.RolloutComplete, Succeeded: 2}}
	got := Bundle(BundleInput{Previous: previous, Err: fault.New(fault.Stalled, "Bad", "selector")}, time.Time{})
	if got.Rollout.Phase != fleet.RolloutHalted || got.Rollout.Succeeded != 2 {
		t.Errorf("%+v", got.Rollout)
	}
	got = Bundle(BundleInput{Previous: previous, Err: fault.New(fault.Transient, "Net", "timeout")}, time.Time{})
	if got.Rollout.Phase != fleet.RolloutComplete {
		t.Errorf("%+v", got.Rollout)
	}
}
