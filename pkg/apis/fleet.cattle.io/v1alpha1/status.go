package v1alpha1

import "github.com/rancher/wrangler/v3/pkg/genericcondition"

// Condition is one observation about an object. Wrangler's shape (lastUpdateTime beside
// lastTransitionTime) is what upstream writes and Rancher's dashboard reads.
type Condition = genericcondition.GenericCondition

// BundleSummary counts BundleDeployments by state.
type BundleSummary struct {
	// +optional
	NotReady int `json:"notReady,omitempty"`
	// +optional
	WaitApplied int `json:"waitApplied,omitempty"`
	// +optional
	ErrApplied int `json:"errApplied,omitempty"`
	// +optional
	OutOfSync int `json:"outOfSync,omitempty"`
	// +optional
	Modified int `json:"modified,omitempty"`
	// +optional
	Ready int `json:"ready"`
	// +optional
	Pending int `json:"pending,omitempty"`
	// DesiredReady is the number of deployments there should be.
	// +optional
	DesiredReady int `json:"desiredReady"`
	// NonReadyResources names up to ten deployments that are not ready, worst first.
	// +nullable
	// +optional
	NonReadyResources []NonReadyResource `json:"nonReadyResources,omitempty"`
}

// NonReadyResource is one deployment (of a bundle on a cluster) that is not ready.
type NonReadyResource struct {
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`
	// +nullable
	// +optional
	State BundleState `json:"bundleState,omitempty"`
	// +nullable
	// +optional
	Message string `json:"message,omitempty"`
	// +nullable
	// +optional
	ModifiedStatus []ModifiedStatus `json:"modifiedStatus,omitempty"`
	// +nullable
	// +optional
	NonReadyStatus []NonReadyStatus `json:"nonReadyStatus,omitempty"`
}

// ModifiedStatus is an object on a member that differs from what was applied.
type ModifiedStatus struct {
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
	// Create (on the wire: missing) says that the object is gone.
	// +optional
	Create bool `json:"missing,omitempty"`
	// Exist says that the object is there but owned by somebody else.
	// +optional
	Exist bool `json:"exist,omitempty"`
	// Delete says that the object should not be there.
	// +optional
	Delete bool `json:"delete,omitempty"`
	// Patch is the JSON merge patch that would restore it.
	// +nullable
	// +optional
	Patch string `json:"patch,omitempty"`
}

// NonReadyStatus is an object on a member that is not ready.
type NonReadyStatus struct {
	// +nullable
	// +optional
	UID string `json:"uid,omitempty"`
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
	// +optional
	Summary ObjectSummary `json:"summary,omitempty"`
}

// ObjectSummary says in one word and some messages how an object does.
type ObjectSummary struct {
	// +optional
	State string `json:"state,omitempty"`
	// +optional
	Error bool `json:"error,omitempty"`
	// +optional
	Transitioning bool `json:"transitioning,omitempty"`
	// +optional
	Message []string `json:"message,omitempty"`
}

// ResourceCounts counts objects on members by state.
type ResourceCounts struct {
	// +optional
	Ready int `json:"ready"`
	// +optional
	DesiredReady int `json:"desiredReady"`
	// +optional
	WaitApplied int `json:"waitApplied"`
	// +optional
	Modified int `json:"modified"`
	// +optional
	Orphaned int `json:"orphaned"`
	// +optional
	Missing int `json:"missing"`
	// +optional
	Unknown int `json:"unknown"`
	// +optional
	NotReady int `json:"notReady"`
}

// Resource is one object as it appears on all its clusters together.
type Resource struct {
	// +nullable
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// +nullable
	// +optional
	Kind string `json:"kind,omitempty"`
	// Type is "<group>.<kind in lower case>", without the group for the core group.
	// +optional
	Type string `json:"type,omitempty"`
	// ID is "namespace/name", or the name alone.
	// +nullable
	// +optional
	ID string `json:"id,omitempty"`
	// +nullable
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	IncompleteState bool `json:"incompleteState,omitempty"`
	// +optional
	State string `json:"state,omitempty"`
	// +optional
	Error bool `json:"error,omitempty"`
	// +optional
	Transitioning bool `json:"transitioning,omitempty"`
	// +nullable
	// +optional
	Message string `json:"message,omitempty"`
	// PerClusterState lists clusters ("namespace/name") by the object's state there.
	// +nullable
	PerClusterState PerClusterState `json:"perClusterState"`
}

// PerClusterState lists clusters ("namespace/name") by state. ErrApplied and OutOfSync are our additions.
type PerClusterState struct {
	// +nullable
	// +optional
	Ready []string `json:"ready,omitempty"`
	// +nullable
	// +optional
	WaitApplied []string `json:"waitApplied,omitempty"`
	// +nullable
	// +optional
	Pending []string `json:"pending,omitempty"`
	// +nullable
	// +optional
	Modified []string `json:"modified,omitempty"`
	// +nullable
	// +optional
	Orphaned []string `json:"orphaned,omitempty"`
	// +nullable
	// +optional
	Missing []string `json:"missing,omitempty"`
	// +nullable
	// +optional
	Unknown []string `json:"unknown,omitempty"`
	// +nullable
	// +optional
	NotReady []string `json:"notReady,omitempty"`
	// +optional
	ErrApplied []string `json:"errApplied,omitempty"`
	// +optional
	OutOfSync []string `json:"outOfSync,omitempty"`
}

// StatusBase is what GitRepo and HelmOp report about the deployments of their bundles.
type StatusBase struct {
	// ReadyClusters counts clusters whose deployments are all ready.
	// +optional
	ReadyClusters int `json:"readyClusters"`
	// DesiredReadyClusters counts clusters with a deployment.
	// +optional
	DesiredReadyClusters int `json:"desiredReadyClusters"`
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// +optional
	Display StatusDisplay `json:"display,omitempty"`
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// Resources lists the objects of all bundles, capped.
	// +optional
	Resources []Resource `json:"resources,omitempty"`
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// PerClusterResourceCounts is keyed "namespace/name" of the cluster.
	// +optional
	PerClusterResourceCounts map[string]*ResourceCounts `json:"perClusterResourceCounts,omitempty"`
}

// StatusDisplay holds the words shown to people for a GitRepo or HelmOp.
type StatusDisplay struct {
	// ReadyBundleDeployments is "ready/desired".
	// +optional
	ReadyBundleDeployments string `json:"readyBundleDeployments,omitempty"`
	// State is the worst state, left out when everything is ready.
	// +optional
	State string `json:"state,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// Error says that a person has to act.
	// +optional
	Error bool `json:"error,omitempty"`
	// Transitioning says that it is under way and needs nobody (our addition).
	// +optional
	Transitioning bool `json:"transitioning,omitempty"`
}
