package target

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Whatever changes between plans, one with a memory is the one without, and it works out only what changed.
func TestPlanWithMemory(t *testing.T) {
	specs := []string{
		"targets: [{clusterSelector: {}}]",
		"targets: [{clusterSelector: {matchLabels: {env: prod}}}]",
		"{helm: {values: {a: '${ .ClusterName }-${ index .ClusterLabels \"env\" }'}}, targets: [{clusterSelector: {matchExpressions: [{key: env, operator: Exists}]}}]}",
		"{targets: [{clusterGroup: eu}, {clusterSelector: {matchLabels: {env: dev}}, doNotDeploy: true}]}",
	}
	random := rand.New(rand.NewPCG(5, 6))
	for _, spec := range specs {
		memory := &Memory{}
		s := Snapshot{Bundle: bundleOf(t, spec), ManifestID: "s-1"}
		s.Bundle.Generation = 1
		for i := range 12 {
			s.Clusters = append(s.Clusters, ClusterInfo{Namespace: "ws", Name: fmt.Sprintf("c%d", i), DeploymentNamespace: fmt.Sprintf("cluster-%d", i)})
		}
		s.Groups = []fleet.ClusterGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "eu"}}}
		s.Groups[0].Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
		for step := range 60 {
			everything, changed := step == 0, 0
			switch random.IntN(8) {
			case 0:
				s.Bundle = s.Bundle.DeepCopy()
				s.Bundle.Generation++
				everything = true
			case 1:
				s.ManifestID = fmt.Sprintf("s-%d", random.IntN(1000)+step*1000)
				everything = true
			case 2:
				group := s.Groups[0].DeepCopy()
				group.Generation++
				group.Spec.Selector.MatchLabels["env"] = []string{"prod", "dev"}[random.IntN(2)]
				s.Groups = []fleet.ClusterGroup{*group}
				everything = everything || RefersToGroups(&s.Bundle.Spec)
			case 3:
				s.Clusters[random.IntN(12)].Paused = random.IntN(2) == 0
			default:
				one := &s.Clusters[random.IntN(12)]
				one.Labels = map[string]string{"env": fmt.Sprint("prod", step)[:4+random.IntN(2)], "step": fmt.Sprint(step)}
				changed = 1
			}
			plain, err := NewPlan(s)
			if err != nil {
				t.Fatal(err)
			}
			s.Memory = memory
			remembered, err := NewPlan(s)
			if err != nil {
				t.Fatal(err)
			}
			s.Memory = nil
			if diff := cmp.Diff(plain, remembered, cmpopts.EquateErrors(), cmp.AllowUnexported(Deployment{})); diff != "" {
				t.Fatalf("%s, step %d: %s", spec, step, diff)
			}
			if everything {
				changed = 12
			}
			if memory.Evaluated != changed || memory.Evaluated+memory.Cached != 12 {
				t.Fatalf("%s, step %d: %d evaluated, %d cached, want %d evaluated", spec, step, memory.Evaluated, memory.Cached, changed)
			}
		}
		s.Clusters, s.Memory = s.Clusters[:3], memory
		if _, err := NewPlan(s); err != nil || len(memory.clusters) != 3 {
			t.Errorf("%d clusters are remembered, %v", len(memory.clusters), err)
		}
	}
}

// What is remembered does not keep what a pass read: caches have newer ones by the next.
func TestMemoryKeepsNoSnapshot(t *testing.T) {
	for name, spec := range map[string]string{"templates": everywhere, "static": "targets: [{clusterSelector: {}}]"} {
		memory := &Memory{}
		plan := func() (*weak.Pointer[fleet.BundleDeployment], *weak.Pointer[ClusterInfo]) {
			w := newWorld(t)
			s := Snapshot{Bundle: bundleOf(t, spec), ManifestID: "s-1", Clusters: fleetOf(3)}
			w.settle(s)
			s.Current, s.Memory = w.current(), memory
			for range 2 { // one that works everything out, and one that remembers it
				if _, err := NewPlan(s); err != nil {
					t.Fatal(err)
				}
			}
			deployment, cluster := weak.Make(s.Current[0]), weak.Make(&s.Clusters[0])
			return &deployment, &cluster
		}
		deployment, cluster := plan()
		runtime.GC()
		if deployment.Value() != nil || cluster.Value() != nil {
			t.Errorf("%s: deployments or clusters of the last plan are kept", name)
		}
		if memory.Cached != 3 {
			t.Errorf("%s: %d clusters are remembered", name, memory.Cached)
		}
	}
}
