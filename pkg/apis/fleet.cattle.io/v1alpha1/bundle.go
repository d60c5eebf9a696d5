package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Bundle is a tree of files with the options and targets to deploy it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=bundles
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="BundleDeployments-Ready",type=string,JSONPath=`.status.display.readyClusters`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Bundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   BundleSpec   `json:"spec,omitempty"`
	Status BundleStatus `json:"status,omitempty"`
}

// BundleList is a list of Bundles.
//
// +kubebuilder:object:root=true
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bundle `json:"items"`
}

// TargetCustomizationMode says how several matching customizations combine.
//
// +kubebuilder:validation:Enum=FirstMatch;AllMatches
type TargetCustomizationMode string

// The two modes.
const (
	// FirstMatch applies the first customization that matches a cluster.
	FirstMatch TargetCustomizationMode = "FirstMatch"
	// AllMatches applies every matching customization in order.
	AllMatches TargetCustomizationMode = "AllMatches"
)

// BundleSpec is the content, the options and the targets.
type BundleSpec struct {
	BundleDeploymentOptions `json:",inline"`

	// Paused stages changes without rolling them out.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// RolloutStrategy says how many clusters change at a time.
	// +nullable
	// +optional
	RolloutStrategy *RolloutStrategy `json:"rolloutStrategy,omitempty"`

	// Resources are the files.
	// +nullable
	// +optional
	Resources []BundleResource `json:"resources,omitempty"`

	// TargetCustomizationMode is FirstMatch unless set.
	// +kubebuilder:default=FirstMatch
	// +optional
	TargetCustomizationMode TargetCustomizationMode `json:"targetCustomizationMode,omitempty"`

	// Targets are customizations followed by destinations.
	// +optional
	Targets []BundleTarget `json:"targets,omitempty"`

	// TargetRestrictions is the list of clusters that may be reached at all.
	// +optional
	TargetRestrictions []ClusterTarget `json:"targetRestrictions,omitempty"`

	// DependsOn delays the deployment until other bundles on the same cluster are far enough.
	// +nullable
	// +optional
	DependsOn []BundleRef `json:"dependsOn,omitempty"`

	// ContentsID is set when the files live elsewhere: in a registry, or where ContentsStorage says.
	// +nullable
	// +optional
	ContentsID string `json:"contentsId,omitempty"`

	// ContentsStorage is Content when ContentsID names a Content on the hub, which holds the files of a bundle
	// that is too large for one object, and empty for a registry (our addition).
	// +kubebuilder:validation:Enum=Content
	// +optional
	ContentsStorage ContentsStorage `json:"contentsStorage,omitempty"`

	// HelmOpOptions mark a bundle made by a HelmOp.
	// +optional
	HelmOpOptions *BundleHelmOptions `json:"helmOpOptions,omitempty"`

	// ValuesHash is the digest of the Secret that holds the Helm values.
	// +optional
	ValuesHash string `json:"valuesHash,omitempty"`

	// Validate lets the hub render the bundle before it sends it: a cluster for which it does not render keeps
	// what it has. Unset means what the hub is set to. It is no option: deployment ids do not depend on it
	// (our addition).
	// +optional
	Validate *bool `json:"validate,omitempty"`

	// Merge lets the bundle be delivered together with others. It is no option (our addition).
	// +optional
	Merge *MergeOptions `json:"merge,omitempty"`
}

// MergeMode says what is delivered together.
type MergeMode string

// The modes.
const (
	// MergePerPath delivers every bundle by itself: the default.
	MergePerPath MergeMode = "PerPath"
	// MergePerRepo delivers all bundles of a GitRepo to a cluster in one BundleDeployment.
	MergePerRepo MergeMode = "PerRepo"
)

// MergeOptions say what is delivered together.
type MergeOptions struct {
	// Mode is PerPath unless set.
	// +kubebuilder:validation:Enum=PerPath;PerRepo
	// +optional
	Mode MergeMode `json:"mode,omitempty"`
	// MaxBytes of options in one object, beyond which there are several; 131072 unless set.
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=524288
	// +optional
	MaxBytes int `json:"maxBytes,omitempty"`
}

// ContentsStorage says where the files are that a Bundle does not hold itself.
type ContentsStorage string

// ContentsOnHub is the storage in Contents. The zero value is a registry, which upstream's hub knows too.
const ContentsOnHub ContentsStorage = "Content"

// BundleResource is one file.
type BundleResource struct {
	// Name is the path relative to the bundle's folder.
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`
	// Content is the text, or base64 of gzip when Encoding says so.
	// +nullable
	// +optional
	Content string `json:"content,omitempty"`
	// Encoding is empty or base64+gz.
	// +nullable
	// +optional
	Encoding string `json:"encoding,omitempty"`
}

// BundleRef names bundles a deployment waits for.
type BundleRef struct {
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`
	// +nullable
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
	// AcceptedStates that end the wait; empty means Ready.
	// +optional
	AcceptedStates []BundleState `json:"acceptedStates,omitempty"`
}

// BundleHelmOptions are what a HelmOp passes on for the download of its chart.
type BundleHelmOptions struct {
	// +nullable
	// +optional
	SecretName string `json:"helmOpSecretName,omitempty"`
	// +optional
	InsecureSkipTLSVerify bool `json:"helmOpInsecureSkipTLSVerify,omitempty"`
	// +nullable
	// +optional
	CABundle []byte `json:"helmOpCABundle,omitempty"`
}

// RolloutStrategy says how many clusters change at a time. Numbers may be percentages.
type RolloutStrategy struct {
	// MaxUnavailable clusters at a time; nil means 100%.
	// +nullable
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// MaxUnavailablePartitions before later partitions wait; nil means 0.
	// +nullable
	// +optional
	MaxUnavailablePartitions *intstr.IntOrString `json:"maxUnavailablePartitions,omitempty"`
	// AutoPartitionSize of the partitions made when none are listed; nil means 25%.
	// +nullable
	// +optional
	AutoPartitionSize *intstr.IntOrString `json:"autoPartitionSize,omitempty"`
	// AutoPartitionThreshold is the number of clusters from which partitions are made; nil means 200.
	// +nullable
	// +optional
	AutoPartitionThreshold *int `json:"autoPartitionThreshold,omitempty"`
	// MaxNew deployments created in one pass; nil means 50.
	// +nullable
	// +optional
	MaxNew *int `json:"maxNew,omitempty"`
	// Partitions change one after another.
	// +nullable
	// +optional
	Partitions []Partition `json:"partitions,omitempty"`

	// Type says how clusters follow one another; nil means Partitioned.
	// +optional
	Type *RolloutType `json:"type,omitempty"`
	// MaxConcurrency clusters take a change at a time, until they are ready for MinSuccessTime; nil means
	// 25% for the type Progressive and no limit for the others.
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
	// MinSuccessTime is how long a cluster has to be ready before it counts as succeeded.
	// +optional
	MinSuccessTime *Duration `json:"minSuccessTime,omitempty"`
	// ProgressDeadline is how long after it was told a cluster may take to become ready; after that it has
	// timed out, which is a failure.
	// +optional
	ProgressDeadline *Duration `json:"progressDeadline,omitempty"`
	// MaxFailures that do not halt the rollout: clusters that failed or timed out. A percentage is of all
	// clusters, or of each partition for ProgressivePerGroup. nil means 0 for the two progressive types and
	// no limit for the others.
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
	// MandatoryPartitions are names of partitions that change first, in this order, each of them completely
	// and without a failure.
	// +optional
	MandatoryPartitions []string `json:"mandatoryPartitions,omitempty"`
}

// RolloutType says how the clusters of a rollout follow one another.
//
// +kubebuilder:validation:Enum=Partitioned;All;Progressive;ProgressivePerGroup
type RolloutType string

// The types of rollouts.
const (
	// RolloutPartitioned changes partition after partition, within maxUnavailable.
	RolloutPartitioned RolloutType = "Partitioned"
	// RolloutAll changes all clusters at once.
	RolloutAll RolloutType = "All"
	// RolloutProgressive changes maxConcurrency clusters at a time, without regard to partitions other than
	// the mandatory ones.
	RolloutProgressive RolloutType = "Progressive"
	// RolloutProgressivePerGroup changes partition after partition, each when the one before has succeeded.
	RolloutProgressivePerGroup RolloutType = "ProgressivePerGroup"
)

// RolloutPhase says whether a rollout goes on by itself.
//
// +kubebuilder:validation:Enum=Progressing;Complete;Halted
type RolloutPhase string

// The phases of a rollout.
const (
	// RolloutProgressing goes on by itself.
	RolloutProgressing RolloutPhase = "Progressing"
	// RolloutComplete has reached every cluster that is waited for.
	RolloutComplete RolloutPhase = "Complete"
	// RolloutHalted waits for a person: it is paused, too much failed, or a limit is 0.
	RolloutHalted RolloutPhase = "Halted"
)

// RolloutStatus says how far the present version of a bundle is. The five numbers add up to the clusters
// that are reached.
type RolloutStatus struct {
	// +optional
	Phase RolloutPhase `json:"phase,omitempty"`
	// ToApply clusters were not told yet.
	// +optional
	ToApply int `json:"toApply"`
	// Progressing clusters were told and are not ready yet, or not for long enough.
	// +optional
	Progressing int `json:"progressing"`
	// Succeeded clusters are ready, for minSuccessTime at least.
	// +optional
	Succeeded int `json:"succeeded"`
	// Failed clusters report that they cannot apply it.
	// +optional
	Failed int `json:"failed"`
	// TimedOut clusters were not ready when progressDeadline was over.
	// +optional
	TimedOut int `json:"timedOut"`
	// NextCheck is when time alone may change these numbers.
	// +optional
	NextCheck *metav1.Time `json:"nextCheck,omitempty"`
	// Breached says that more failed than maxFailures, so that nothing else is told.
	// +optional
	Breached bool `json:"breached,omitempty"`
}

// Partition is a part of the clusters that changes before the next one.
type Partition struct {
	ClusterTarget `json:",inline"`
	// MaxUnavailable clusters of this partition; nil means the bundle's.
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// BundleStatus is the roll-up of a bundle's deployments.
type BundleStatus struct {
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// NewlyCreated deployments in the last pass.
	// +optional
	NewlyCreated int `json:"newlyCreated,omitempty"`
	// Unavailable deployments now.
	// +optional
	Unavailable int `json:"unavailable"`
	// UnavailablePartitions now.
	// +optional
	UnavailablePartitions int `json:"unavailablePartitions"`
	// MaxUnavailable deployments by the rollout strategy.
	// +optional
	MaxUnavailable int `json:"maxUnavailable"`
	// MaxUnavailablePartitions by the rollout strategy.
	// +optional
	MaxUnavailablePartitions int `json:"maxUnavailablePartitions"`
	// Partitions in order.
	// +optional
	PartitionStatus []PartitionStatus `json:"partitions,omitempty"`
	// Rollout says how far the present version is.
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`
	// +optional
	Display BundleDisplay `json:"display,omitempty"`
	// ResourceKey is deprecated and always empty.
	// +nullable
	// +optional
	ResourceKey []ResourceKey `json:"resourceKey,omitempty"`
	// OCIReference is where the files are stored, for display.
	// +optional
	OCIReference string `json:"ociReference,omitempty"`
	// ObservedGeneration is the spec's generation this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`
	// ObservedTargets digests the targets by which the deployments were last made: only an edit of those
	// explains that many of them go (our addition).
	// +optional
	ObservedTargets string `json:"observedTargets,omitempty"`
	// ResourcesSHA256Sum is the digest of the files.
	// +optional
	ResourcesSHA256Sum string `json:"resourcesSha256Sum,omitempty"`
}

// ResourceKey names an object.
type ResourceKey struct {
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
}

// PartitionStatus counts one partition.
type PartitionStatus struct {
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`
	// Count of clusters.
	// +optional
	Count int `json:"count,omitempty"`
	// +optional
	MaxUnavailable int `json:"maxUnavailable,omitempty"`
	// +optional
	Unavailable int `json:"unavailable,omitempty"`
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
}

// BundleDisplay holds the words shown to people.
type BundleDisplay struct {
	// ReadyClusters is "ready/desired".
	// +nullable
	// +optional
	ReadyClusters string `json:"readyClusters,omitempty"`
	// State is the worst state, left out when everything is ready.
	// +nullable
	// +optional
	State string `json:"state,omitempty"`
}
