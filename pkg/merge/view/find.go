package view

import (
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// In returns what objects show of a deployment, nil if none carries it.
func In(objects []fleet.BundleDeployment, key types.NamespacedName) *fleet.BundleDeployment {
	var carried []*fleet.BundleDeployment
	for i := range objects {
		for _, deployment := range merge.Explode(&objects[i]) {
			if deployment.Namespace == key.Namespace && deployment.Name == key.Name {
				carried = append(carried, deployment)
			}
		}
	}
	return merge.Combine(carried)
}
