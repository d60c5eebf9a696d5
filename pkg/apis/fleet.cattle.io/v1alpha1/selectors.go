package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterTarget selects clusters; criteria that are present must all hold, and one without criteria
// selects nothing.
type ClusterTarget struct {
	// Name of this entry, for people.
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`
	// ClusterName equals the cluster's name or its display-name label.
	// +nullable
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// ClusterSelector matches the cluster's labels; an empty selector matches every cluster.
	// +nullable
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`
	// ClusterGroup is the name of a group the cluster is in.
	// +nullable
	// +optional
	ClusterGroup string `json:"clusterGroup,omitempty"`
	// ClusterGroupSelector matches the labels of a group the cluster is in.
	// +nullable
	// +optional
	ClusterGroupSelector *metav1.LabelSelector `json:"clusterGroupSelector,omitempty"`
}

// BundleTarget selects clusters and carries the options that apply to them.
type BundleTarget struct {
	BundleDeploymentOptions `json:",inline"`
	ClusterTarget           `json:",inline"`

	// DoNotDeploy takes the matching clusters out.
	// +optional
	DoNotDeploy bool `json:"doNotDeploy,omitempty"`
}
