package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// hostile is a report that is as large and as wrong as can be.
func hostile(bundle, cluster string) *fleet.BundleDeployment {
	long := strings.Repeat("<", 160_000) // six bytes each in JSON
	bd := &fleet.BundleDeployment{}
	bd.Labels = map[string]string{
		fleet.BundleNamespaceLabel: "ws", fleet.BundleLabel: bundle,
		fleet.ClusterNamespaceLabel: "ws", fleet.ClusterLabel: cluster, fleet.RepoLabel: "repo",
	}
	bd.Spec.DeploymentID, bd.Spec.StagedDeploymentID = "s-1:o", "s-1:o"
	s := &bd.Status
	s.AppliedDeploymentID, s.Release, s.Display.State, s.Display.Deployed = long, long, long, long
	s.ResourceCounts = fleet.ResourceCounts{Ready: -1 << 60, DesiredReady: 1 << 62, NotReady: -5}
	for _, kind := range []string{fleet.ConditionDeployed, fleet.ConditionInstalled, fleet.ConditionMonitored, long} {
		s.Conditions = append(s.Conditions, fleet.Condition{Type: kind, Status: corev1.ConditionFalse, Reason: fleet.ReasonError, Message: long})
	}
	for range 100 {
		s.ModifiedStatus = append(s.ModifiedStatus, fleet.ModifiedStatus{Kind: long, APIVersion: long, Namespace: long, Name: long, Patch: long})
		s.NonReadyStatus = append(s.NonReadyStatus, fleet.NonReadyStatus{UID: long, Kind: long, APIVersion: long, Namespace: long, Name: long,
			Summary: fleet.ObjectSummary{State: long, Error: true, Message: []string{long, long}}})
		s.Resources = append(s.Resources, fleet.BundleDeploymentResource{Kind: long, APIVersion: long, Namespace: long, Name: long})
	}
	return bd
}

func TestBound(t *testing.T) {
	bd := hostile("app", "evil")
	Bound(bd)
	size := func() int {
		text, err := json.Marshal(bd.Status)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	once := size()
	if once > 1<<20 {
		t.Errorf("%d bytes are left", once)
	}
	if c := bd.Status.ResourceCounts; c.Ready != 0 || c.DesiredReady != maxCount || c.NotReady != 0 {
		t.Errorf("counts %+v", c)
	}
	if Of(bd) != fleet.ErrApplied || !bd.Status.IncompleteState {
		t.Errorf("state %s, incomplete %v", Of(bd), bd.Status.IncompleteState)
	}
	Bound(bd)
	if again := size(); again != once {
		t.Errorf("bounding again makes %d bytes of %d", again, once)
	}
	for i := range 100_000 {
		bd.Status.Resources = append(bd.Status.Resources, fleet.BundleDeploymentResource{Name: itoa(i)})
	}
	Bound(bd)
	if kept := len(bd.Status.Resources); kept > 10_000 || cap(bd.Status.Resources) > 2*kept {
		t.Errorf("%d objects are kept in room for %d", kept, cap(bd.Status.Resources))
	}
}

func TestBoundLeavesHonestReports(t *testing.T) {
	bd := &fleet.BundleDeployment{}
	for i := range 2000 {
		bd.Status.Resources = append(bd.Status.Resources, fleet.BundleDeploymentResource{
			Kind: "Deployment", APIVersion: "apps/v1", Namespace: "namespace-of-an-application", Name: "application-with-a-long-name-" + itoa(i),
		})
	}
	bd.Status.ResourceCounts = fleet.ResourceCounts{Ready: 2000, DesiredReady: 2000}
	bd.Status.NonReadyStatus = []fleet.NonReadyStatus{{Kind: "Pod", Name: "a", Summary: fleet.ObjectSummary{Message: []string{"größer"}}}}
	before := bd.DeepCopy()
	Bound(bd)
	if was, is := mustJSON(t, before), mustJSON(t, bd); was != is {
		t.Errorf("%d bytes became %d", len(was), len(is))
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

// One cluster's agent must not be able to make what others share too large to store, or wrong for them.
func TestHostileReportsInRollup(t *testing.T) {
	index := NewIndex()
	for i := range 20 {
		bd := hostile("app", "evil-"+itoa(i))
		record := Trim(bd)
		if record.State != fleet.ErrApplied || len(record.Message) > maxRecordText {
			t.Fatalf("state %s, message of %d bytes", record.State, len(record.Message))
		}
		index.Set(Ref{"cluster-evil-" + itoa(i), "app"}, record)
	}
	good := hostile("app", "good")
	good.Status = fleet.BundleDeploymentStatus{DeploymentPartStatus: fleet.DeploymentPartStatus{
		AppliedDeploymentID: "s-1:o", Ready: true, NonModified: true, ResourceCounts: fleet.ResourceCounts{Ready: 3, DesiredReady: 3},
		Resources: []fleet.BundleDeploymentResource{{Kind: "ConfigMap", APIVersion: "v1", Namespace: "n", Name: "forged\x1f\x1e"}},
	}}
	index.Set(Ref{"cluster-good", "app"}, Trim(good))
	now := time.Unix(0, 0)
	bundle := Bundle(BundleInput{Rollup: index.Bundle("ws", "app")}, now)
	repo := Parent{KindGitRepo, Ref{"ws", "repo"}}
	source := Source(SourceInput{Rollup: index.Of(repo), Resources: index.Resources(repo), PerCluster: index.PerCluster(repo)}, now)
	if bundle.Summary.Ready != 1 || bundle.Summary.ErrApplied != 20 || bundle.Summary.DesiredReady != 21 {
		t.Errorf("summary %+v", bundle.Summary)
	}
	if c := source.ResourceCounts; c.Ready != 3 || c.NotReady != 0 || c.DesiredReady != 3+20*maxCount {
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
	if own := index.Resources(Parent{KindCluster, Ref{"ws", "good"}}); len(own) != 1 || own[0].Name != "forged" {
		t.Errorf("objects %+v", own)
	}
}
