package target

import (
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// BundleOf names the Bundle that a deployment, or what is made for one, is of by its labels; empty when they say none.
func BundleOf(labels map[string]string) types.NamespacedName {
	return types.NamespacedName{Namespace: labels[fleet.BundleNamespaceLabel], Name: labels[fleet.BundleLabel]}
}

// ClusterOf names the Cluster of a deployment, "namespace/name", by its labels.
func ClusterOf(deployment *fleet.BundleDeployment) string {
	return deployment.Labels[fleet.ClusterNamespaceLabel] + "/" + deployment.Labels[fleet.ClusterLabel]
}
