package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is a member of the fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusters
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Bundles-Ready",type=string,JSONPath=`.status.display.readyBundles`
// +kubebuilder:printcolumn:name="Last-Seen",type=string,JSONPath=`.status.agent.lastSeen`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterSpec   `json:"spec,omitempty"`
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}

// ClusterSpec holds a cluster's identity and how its agent runs.
type ClusterSpec struct {
	// Paused stages bundles for this cluster without deploying them.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// ClientID is what the agent presents when it registers.
	// +nullable
	// +optional
	ClientID string `json:"clientID,omitempty"`
	// KubeConfigSecret lets the hub install the agent.
	// +nullable
	// +optional
	KubeConfigSecret string `json:"kubeConfigSecret,omitempty"`
	// KubeConfigSecretNamespace defaults to the cluster's.
	// +nullable
	// +optional
	KubeConfigSecretNamespace string `json:"kubeConfigSecretNamespace,omitempty"`
	// RedeployAgentGeneration redeploys the agent when it is raised.
	// +optional
	RedeployAgentGeneration int64 `json:"redeployAgentGeneration,omitempty"`
	// AgentEnvVars are added to the agent's environment.
	// +nullable
	// +optional
	AgentEnvVars []corev1.EnvVar `json:"agentEnvVars,omitempty"`
	// AgentNamespace on the member.
	// +nullable
	// +optional
	AgentNamespace string `json:"agentNamespace,omitempty"`
	// PrivateRepoURL is a registry prefix for the agent's image.
	// +nullable
	// +optional
	PrivateRepoURL string `json:"privateRepoURL,omitempty"`
	// TemplateValues are offered to templates as .ClusterValues.
	// +nullable
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	TemplateValues *GenericMap `json:"templateValues,omitempty"`
	// AgentTolerations are added to the agent's.
	// +nullable
	// +optional
	AgentTolerations []corev1.Toleration `json:"agentTolerations,omitempty"`
	// AgentAffinity replaces the agent's affinity.
	// +nullable
	// +optional
	AgentAffinity *corev1.Affinity `json:"agentAffinity,omitempty"`
	// AgentResources are the agent's requests and limits.
	// +nullable
	// +optional
	AgentResources *corev1.ResourceRequirements `json:"agentResources,omitempty"`
	// HostNetwork runs the agent in the host's network.
	// +nullable
	// +optional
	HostNetwork *bool `json:"hostNetwork,omitempty"`
	// AgentSchedulingCustomization makes a priority class and a disruption budget for the agent.
	// +nullable
	// +optional
	AgentSchedulingCustomization *AgentSchedulingCustomization `json:"agentSchedulingCustomization,omitempty"`
	// AgentPullSecrets replace the hub's list; an empty list means none.
	// +nullable
	// +optional
	AgentPullSecrets []LocalObjectReference `json:"agentPullSecrets,omitempty"`
}

// AgentSchedulingCustomization makes a priority class and a disruption budget for the agent.
type AgentSchedulingCustomization struct {
	// +optional
	PriorityClass *PriorityClassSpec `json:"priorityClass,omitempty"`
	// +optional
	PodDisruptionBudget *PodDisruptionBudgetSpec `json:"podDisruptionBudget,omitempty"`
}

// PriorityClassSpec is the agent's priority.
type PriorityClassSpec struct {
	// +optional
	Value int `json:"value,omitempty"`
	// +optional
	PreemptionPolicy corev1.PreemptionPolicy `json:"preemptionPolicy,omitempty"`
}

// PodDisruptionBudgetSpec bounds voluntary disruption of agents; one of the two may be set.
type PodDisruptionBudgetSpec struct {
	// +optional
	MinAvailable string `json:"minAvailable,omitempty"`
	// +optional
	MaxUnavailable string `json:"maxUnavailable,omitempty"`
}

// ClusterPhase is where a cluster is in its life (our addition).
type ClusterPhase string

// The phases.
const (
	ClusterPending  ClusterPhase = "Pending"
	ClusterReady    ClusterPhase = "Ready"
	ClusterNotReady ClusterPhase = "NotReady"
	ClusterUnknown  ClusterPhase = "Unknown"
)

// ClusterStatus is what the hub knows about a member.
type ClusterStatus struct {
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// Namespace on the hub that holds the cluster's BundleDeployments.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
	// +optional
	ReadyGitRepos int `json:"readyGitRepos"`
	// +optional
	DesiredReadyGitRepos int `json:"desiredReadyGitRepos"`
	// +optional
	ReadyHelmOps int `json:"readyHelmOps"`
	// +optional
	DesiredReadyHelmOps int `json:"desiredReadyHelmOps"`
	// +nullable
	// +optional
	AgentEnvVarsHash string `json:"agentEnvVarsHash,omitempty"`
	// +nullable
	// +optional
	AgentPrivateRepoURL string `json:"agentPrivateRepoURL,omitempty"`
	// +nullable
	// +optional
	AgentHostNetwork bool `json:"agentHostNetwork,omitempty"`
	// +nullable
	// +optional
	AgentDeployedGeneration *int64 `json:"agentDeployedGeneration,omitempty"`
	// +optional
	AgentMigrated bool `json:"agentMigrated,omitempty"`
	// +optional
	AgentNamespaceMigrated bool `json:"agentNamespaceMigrated,omitempty"`
	// +optional
	CattleNamespaceMigrated bool `json:"cattleNamespaceMigrated,omitempty"`
	// +optional
	AgentAffinityHash string `json:"agentAffinityHash,omitempty"`
	// +nullable
	// +optional
	AgentResourcesHash string `json:"agentResourcesHash,omitempty"`
	// +nullable
	// +optional
	AgentTolerationsHash string `json:"agentTolerationsHash,omitempty"`
	// +optional
	AgentSchedulingCustomizationHash string `json:"agentSchedulingCustomizationHash,omitempty"`
	// +optional
	AgentConfigChanged bool `json:"agentConfigChanged,omitempty"`
	// +nullable
	// +optional
	APIServerURL string `json:"apiServerURL,omitempty"`
	// +nullable
	// +optional
	APIServerCAHash string `json:"apiServerCAHash,omitempty"`
	// +nullable
	// +optional
	AgentTLSMode string `json:"agentTLSMode,omitempty"`
	// +optional
	// +kubebuilder:validation:Type=string
	GarbageCollectionInterval *metav1.Duration `json:"garbageCollectionInterval,omitempty"`
	// +optional
	Display ClusterDisplay `json:"display,omitempty"`
	// +optional
	Agent AgentStatus `json:"agent,omitempty"`
	// Scheduled says that a Schedule governs the cluster.
	// +optional
	Scheduled bool `json:"scheduled,omitempty"`
	// ActiveSchedule says that the Schedule's window is open.
	// +optional
	ActiveSchedule bool `json:"activeSchedule,omitempty"`

	// Phase of the cluster's life (our addition).
	// +optional
	Phase ClusterPhase `json:"phase,omitempty"`
	// Versions the agent reported (our addition).
	// +optional
	Versions *ClusterVersions `json:"versions,omitempty"`
}

// ClusterVersions are what a member runs.
type ClusterVersions struct {
	// +optional
	Agent string `json:"agent,omitempty"`
	// +optional
	Kubernetes string `json:"kubernetes,omitempty"`
	// Protocol between agent and hub; 0 is upstream's.
	// +optional
	Protocol int `json:"protocol,omitempty"`
}

// ClusterDisplay holds the words shown to people.
type ClusterDisplay struct {
	// ReadyBundles is "ready/desired".
	// +optional
	ReadyBundles string `json:"readyBundles,omitempty"`
	// State is the worst state, left out when everything is ready.
	// +nullable
	// +optional
	State string `json:"state,omitempty"`
	// Message beside State (our addition).
	// +optional
	Message string `json:"message,omitempty"`
	// Error says that a person has to act (our addition).
	// +optional
	Error bool `json:"error,omitempty"`
}

// AgentStatus says when the agent was last heard from.
type AgentStatus struct {
	// +nullable
	// +optional
	LastSeen metav1.Time `json:"lastSeen,omitempty,omitzero"`
	// Namespace of the agent on the member.
	// +nullable
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// ClusterGroup is a set of clusters of its namespace, by label.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=fleet,path=clustergroups
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Clusters-Ready",type=string,JSONPath=`.status.display.readyClusters`
// +kubebuilder:printcolumn:name="Bundles-Ready",type=string,JSONPath=`.status.display.readyBundles`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type ClusterGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterGroupSpec   `json:"spec,omitempty"`
	Status ClusterGroupStatus `json:"status,omitempty"`
}

// ClusterGroupList is a list of ClusterGroups.
//
// +kubebuilder:object:root=true
type ClusterGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterGroup `json:"items"`
}

// ClusterGroupSpec selects the members.
type ClusterGroupSpec struct {
	// Selector matches cluster labels; nil selects nothing, an empty selector everything.
	// +nullable
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// ClusterGroupStatus rolls up the group's clusters.
type ClusterGroupStatus struct {
	// +optional
	ClusterCount int `json:"clusterCount"`
	// +optional
	NonReadyClusterCount int `json:"nonReadyClusterCount"`
	// NonReadyClusters names up to ten.
	// +optional
	NonReadyClusters []string `json:"nonReadyClusters,omitempty"`
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// +optional
	Summary BundleSummary `json:"summary,omitempty"`
	// +optional
	Display ClusterGroupDisplay `json:"display,omitempty"`
	// +optional
	ResourceCounts ResourceCounts `json:"resourceCounts,omitempty"`
}

// ClusterGroupDisplay holds the words shown to people.
type ClusterGroupDisplay struct {
	// ReadyClusters is "ready/all", followed by names of clusters that are not ready.
	// +nullable
	// +optional
	ReadyClusters string `json:"readyClusters,omitempty"`
	// ReadyBundles is "ready/desired".
	// +nullable
	// +optional
	ReadyBundles string `json:"readyBundles,omitempty"`
	// +nullable
	// +optional
	State string `json:"state,omitempty"`
}
