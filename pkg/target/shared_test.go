package target

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// A plan is made from what caches hold: neither making it, nor changing what may be changed of it, changes that.
func TestPlansLeaveCachesAlone(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 41))
	specs := []string{
		everywhere,
		"{helm: {values: {a: {b: 1}}}, correctDrift: {enabled: true}, dependsOn: [{name: other}], targets: [{clusterSelector: {matchLabels: {env: prod}}, kustomize: {dir: x}}, {clusterSelector: {}}]}",
		"{rolloutStrategy: {maxUnavailable: 1, progressDeadline: 1h}, helm: {values: {a: '${ .ClusterName }'}}, targets: [{clusterSelector: {}}]}",
	}
	planned := 0
	for _, spec := range specs {
		w := newWorld(t)
		memory := &Memory{}
		all := fleetOf(6)
		s := Snapshot{Bundle: bundleOf(t, spec), ManifestID: "s-0", Clusters: all, Now: noon, Finalizers: []string{"f"}, Memory: memory}
		for step := range 40 {
			switch random.IntN(5) {
			case 0:
				s.ManifestID = fmt.Sprintf("s-%d", step)
			case 1:
				s.Clusters = all[:2+random.IntN(5)]
			case 2:
				all[random.IntN(6)].Paused = random.IntN(2) == 0
			case 3:
				s.Bundle = s.Bundle.DeepCopy()
				s.Bundle.Labels["step"] = fmt.Sprint(step)
			case 4:
				w.answerAll()
			}
			s.Current, s.MissingValues = w.current(), map[string]bool{}
			var before []*fleet.BundleDeployment
			for _, deployment := range s.Current {
				before = append(before, deployment.DeepCopy())
				s.MissingValues[deployment.Namespace+"/"+deployment.Name] = random.IntN(3) == 0
			}
			plan, err := NewPlan(s)
			if err != nil {
				t.Fatal(err)
			}
			w.carryOut(plan)
			for _, list := range [][]Deployment{plan.Create, plan.Update, plan.Delete, plan.Secrets} {
				for i := range list {
					planned++
					list[i].KeepValues([]byte("{}"))
					spoil(list[i].Object)
				}
			}
			if diff := cmp.Diff(before, s.Current); diff != "" {
				t.Fatalf("%s, step %d: the cache is changed: %s", spec, step, diff)
			}
		}
	}
	if planned < 100 {
		t.Errorf("only %d deployments were planned", planned)
	}
}

// spoil changes what may be changed of a planned object.
func spoil(object *fleet.BundleDeployment) {
	object.Namespace, object.ResourceVersion, object.Generation = "spoilt", "spoilt", -1
	for _, texts := range []map[string]string{object.Labels, object.Annotations} {
		for key := range texts {
			texts[key] = "spoilt"
		}
	}
	for i := range object.Finalizers {
		object.Finalizers[i] = "spoilt"
	}
	object.Spec.DeploymentID, object.Spec.Options, object.Status.Conditions = "spoilt", fleet.BundleDeploymentOptions{}, nil
}
