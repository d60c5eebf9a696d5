package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status/cause"
)

// A difference is told with what to write into fleet.yaml to accept it.
func TestDescribeOffersAnException(t *testing.T) {
	bd := fleet.BundleDeployment{}
	bd.Namespace, bd.Name = "cluster-a", "shop"
	bd.Spec.DeploymentID, bd.Spec.StagedDeploymentID, bd.Status.AppliedDeploymentID = "s-1:2", "s-1:2", "s-1:2"
	bd.Status.Ready = true
	bd.Status.ModifiedStatus = []fleet.ModifiedStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "tide", Patch: `{"data":{"level":"1"}}`}}
	bd.Status.ComparePatches = []fleet.ComparePatch{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "other"},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "tide", Operations: []fleet.Operation{{Op: "remove", Path: "/data/level"}}},
	}
	chain, found := cause.New(cause.World{Deployments: []fleet.BundleDeployment{bd}}).Why(cause.Deployment, "cluster-a", "shop")
	if !found {
		t.Fatal("not found")
	}
	const want = `BundleDeployment shop on / is Modified
because configmap ns/tide modified {"data":{"level":"1"}}
to accept that, have in fleet.yaml:
  diff:
    comparePatches:
    - apiVersion: v1
      kind: ConfigMap
      name: tide
      namespace: ns
      operations:
      - op: remove
        path: /data/level
`
	if diff := cmp.Diff(want, describe(chain)); diff != "" {
		t.Error(diff)
	}
}
