package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BundleDeployment is one Bundle on one Cluster. It lives in the cluster's namespace on the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=bundledeployments
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Deployed",type=string,JSONPath=`.status.display.deployed`
// +kubebuilder:printcolumn:name="Monitored",type=string,JSONPath=`.status.display.monitored`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type BundleDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BundleDeploymentSpec   `json:"spec,omitempty"`
	Status BundleDeploymentStatus `json:"status,omitempty"`
}

// BundleDeploymentList is a list of BundleDeployments.
//
// +kubebuilder:object:root=true
type BundleDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BundleDeployment `json:"items"`
}

// BundleDeploymentSpec is what the cluster should run now, and what it is to run next.
type BundleDeploymentSpec struct {
	DeploymentPartSpec `json:",inline"`
	// Parts are deployments by the names that they would have alone. An object with parts is nothing else: the
	// fields above are empty (our addition).
	// +optional
	Parts map[string]DeploymentPart `json:"parts,omitempty"`
}

// BundleDeploymentStatus is what the agent reports.
type BundleDeploymentStatus struct {
	DeploymentPartStatus `json:",inline"`
	// Parts are what the agent reports of the parts of the spec (our addition).
	// +optional
	Parts map[string]DeploymentPartStatus `json:"parts,omitempty"`
}

// DeploymentPart is what a BundleDeployment of its own would be.
type DeploymentPart struct {
	// Labels say, as those of a BundleDeployment, for which Bundle and Cluster it is.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Generation is raised with each change of the part.
	// +optional
	Generation int64 `json:"generation,omitempty"`
	// +optional
	Spec DeploymentPartSpec `json:"spec,omitempty"`
}

// DeploymentPartSpec is what is to run of one deployment.
type DeploymentPartSpec struct {
	// Paused keeps the agent from acting.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// StagedOptions belong to StagedDeploymentID.
	// +optional
	StagedOptions BundleDeploymentOptions `json:"stagedOptions,omitempty"`
	// StagedDeploymentID is what the rollout will let through next.
	// +nullable
	// +optional
	StagedDeploymentID string `json:"stagedDeploymentID,omitempty"`
	// Options belong to DeploymentID.
	// +optional
	Options BundleDeploymentOptions `json:"options,omitempty"`
	// DeploymentID is what the agent deploys: "<content name>:<digest of the options>".
	// +nullable
	// +optional
	DeploymentID string `json:"deploymentID,omitempty"`
	// DependsOn is copied from the Bundle.
	// +nullable
	// +optional
	DependsOn []BundleRef `json:"dependsOn,omitempty"`
	// CorrectDrift is copied from the options.
	// +optional
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`
	// OCIContents says that the files live in a registry.
	// +optional
	OCIContents bool `json:"ociContents,omitempty"`
	// HelmChartOptions are copied from a HelmOp's bundle.
	// +optional
	HelmChartOptions *BundleHelmOptions `json:"helmChartOptions,omitempty"`
	// ValuesHash is the digest of the Secret of the same name that holds the Helm values.
	// +nullable
	// +optional
	ValuesHash string `json:"valuesHash,omitempty"`
	// DownstreamResourcesGeneration is raised when a copied object changes.
	// +optional
	DownstreamResourcesGeneration int64 `json:"downstreamResourcesGeneration,omitempty"`
	// OffSchedule keeps the agent from acting outside of the cluster's schedule.
	// +optional
	OffSchedule bool `json:"offSchedule,omitempty"`
	// WaitingForValues keeps the agent from acting until the values are there.
	// +optional
	WaitingForValues bool `json:"waitingForValues,omitempty"`
}

// DeploymentPartStatus is what the agent reports of one deployment.
type DeploymentPartStatus struct {
	// +nullable
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// AppliedDeploymentID is the id the objects on the member belong to.
	// +nullable
	// +optional
	AppliedDeploymentID string `json:"appliedDeploymentID,omitempty"`
	// AckedDeploymentID is the id that the agent tried last; what the conditions say is about it. Agents that
	// do not tell leave it empty.
	// +optional
	AckedDeploymentID string `json:"ackedDeploymentID,omitempty"`
	// Release is "namespace/name:revision".
	// +nullable
	// +optional
	Release string `json:"release,omitempty"`
	// Ready says that every object is ready.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// NonModified says that every object is as it was applied.
	// +optional
	NonModified bool `json:"nonModified,omitempty"`
	// NonReadyStatus lists up to ten objects that are not ready.
	// +nullable
	// +optional
	NonReadyStatus []NonReadyStatus `json:"nonReadyStatus,omitempty"`
	// ModifiedStatus lists up to ten objects that differ.
	// +nullable
	// +optional
	ModifiedStatus []ModifiedStatus `json:"modifiedStatus,omitempty"`
	// ComparePatches are the entries for diff.comparePatches in fleet.yaml that would except what
	// ModifiedStatus lists.
	// +nullable
	// +optional
	ComparePatches []ComparePatch `json:"comparePatches,omitempty"`
	// IncompleteState says that one of the two lists was cut.
	// +optional
	IncompleteState bool `json:"incompleteState,omitempty"`
	// +nullable
	// +optional
	Display BundleDeploymentDisplay `json:"display,omitempty"`
	// SyncGeneration is the forceSyncGeneration that was applied.
	// +nullable
	// +optional
	SyncGeneration *int64 `json:"syncGeneration,omitempty"`
	// Resources lists the applied objects.
	// +nullable
	// +optional
	Resources []BundleDeploymentResource `json:"resources,omitempty"`
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// DownstreamResourcesGeneration that was applied.
	// +optional
	DownstreamResourcesGeneration int64 `json:"downstreamResourcesGeneration,omitempty"`
}

// BundleDeploymentDisplay holds the words shown to people.
type BundleDeploymentDisplay struct {
	// +nullable
	// +optional
	Deployed string `json:"deployed,omitempty"`
	// +nullable
	// +optional
	Monitored string `json:"monitored,omitempty"`
	// +nullable
	// +optional
	State string `json:"state,omitempty"`
}

// BundleDeploymentResource is an applied object.
type BundleDeploymentResource struct {
	// +nullable
	// +optional
	Kind string `json:"kind,omitempty"`
	// +nullable
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// +nullable
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`
	// +nullable
	// +optional
	CreatedAt metav1.Time `json:"createdAt,omitempty,omitzero"`
}
