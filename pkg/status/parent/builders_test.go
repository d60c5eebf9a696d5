package parent

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rancher/wrangler/v3/pkg/summary"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/statustest"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func keyOf(bd *fleet.BundleDeployment) tally.Ref {
	return tally.Ref{Namespace: bd.Namespace, Name: bd.Name}
}

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
func indexOf(states ...fleet.BundleState) *tally.Index {
	x := tally.NewIndex()
	for i, state := range states {
		bd := statustest.Deployment("b", fmt.Sprintf("c%d", i), state)
		x.Set(keyOf(bd), tally.Trim(bd))
	}
	return x
}

func sourceOf(states ...fleet.BundleState) SourceInput {
	x := indexOf(states...)
	repo := tally.Parent{Kind: tally.KindGitRepo, Ref: tally.Ref{Namespace: "ws", Name: "repo"}}
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
		bd := statustest.Deployment("b", "c0", state)
		bd.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: deployed, Message: "about the deployment"}}
		bd.Status.Display = status.Display(bd)
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
	for _, state := range statustest.States() {
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

// The same input at another time gives the same status: nothing is written.
func TestStatusesAreStable(t *testing.T) {
	later := noon.Add(time.Hour)
	for _, state := range statustest.States() {
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
	if ready := status.Find(got.Conditions, "Ready"); ready.Reason != "" || ready.Message != "later" {
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
