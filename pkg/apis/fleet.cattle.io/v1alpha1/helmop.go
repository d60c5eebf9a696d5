package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HelmOp deploys a chart without a git repository.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=fleet,path=helmops
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Repo",type=string,JSONPath=`.spec.helm.repo`
// +kubebuilder:printcolumn:name="Chart",type=string,JSONPath=`.spec.helm.chart`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="BundleDeployments-Ready",type=string,JSONPath=`.status.display.readyBundleDeployments`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type HelmOp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   HelmOpSpec   `json:"spec,omitempty"`
	Status HelmOpStatus `json:"status,omitempty"`
}

// HelmOpList is a list of HelmOps.
//
// +kubebuilder:object:root=true
type HelmOpList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HelmOp `json:"items"`
}

// HelmOpSpec is a Bundle's spec with the source of a chart.
type HelmOpSpec struct {
	BundleSpec `json:",inline"`

	// Labels are copied to the Bundle.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// PollingInterval between two looks for a newer version; nil or 0 never looks.
	// +nullable
	// +optional
	PollingInterval *Duration `json:"pollingInterval,omitempty"`
	// HelmSecretName holds the credentials.
	// +nullable
	// +optional
	HelmSecretName string `json:"helmSecretName,omitempty"`
	// InsecureSkipTLSVerify turns certificate checks off.
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`
}

// HelmOpStatus says which version was found and how its deployments do.
type HelmOpStatus struct {
	StatusBase `json:",inline"`

	// LastPollingTime (on the wire: lastPollingTriggered) is the last look for a version.
	// +optional
	LastPollingTime metav1.Time `json:"lastPollingTriggered,omitempty,omitzero"`
	// Version that was resolved.
	// +optional
	Version string `json:"version,omitempty"`
}
