package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BundleNamespaceMapping lets bundles of its namespace reach clusters of other namespaces. It is inert
// while one of the two selectors is nil.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=bundlenamespacemappings
// +kubebuilder:subresource:status
type BundleNamespaceMapping struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// BundleSelector matches labels of Bundles.
	// +nullable
	// +optional
	BundleSelector *metav1.LabelSelector `json:"bundleSelector,omitempty"`
	// NamespaceSelector matches labels of namespaces with clusters.
	// +nullable
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// BundleNamespaceMappingList is a list of BundleNamespaceMappings.
//
// +kubebuilder:object:root=true
type BundleNamespaceMappingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BundleNamespaceMapping `json:"items"`
}

// GitRepoRestriction bounds the GitRepos of its namespace. Deprecated upstream in favour of Policy.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=gitreporestrictions
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Default-ServiceAccount",type=string,JSONPath=`.defaultServiceAccount`
// +kubebuilder:printcolumn:name="Allowed-ServiceAccounts",type=string,JSONPath=`.allowedServiceAccounts`
type GitRepoRestriction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +nullable
	// +optional
	DefaultServiceAccount string `json:"defaultServiceAccount,omitempty"`
	// +nullable
	// +optional
	AllowedServiceAccounts []string `json:"allowedServiceAccounts,omitempty"`
	// AllowedRepoPatterns are unanchored regular expressions or the URL itself.
	// +nullable
	// +optional
	AllowedRepoPatterns []string `json:"allowedRepoPatterns,omitempty"`
	// +nullable
	// +optional
	DefaultClientSecretName string `json:"defaultClientSecretName,omitempty"`
	// +nullable
	// +optional
	AllowedClientSecretNames []string `json:"allowedClientSecretNames,omitempty"`
	// +nullable
	// +optional
	AllowedTargetNamespaces []string `json:"allowedTargetNamespaces,omitempty"`
	// AllowedTargetNamespaceSelector is enforced on the members.
	// +nullable
	// +optional
	AllowedTargetNamespaceSelector *metav1.LabelSelector `json:"allowedTargetNamespaceSelector,omitempty"`
}

// GitRepoRestrictionList is a list of GitRepoRestrictions.
//
// +kubebuilder:object:root=true
type GitRepoRestrictionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitRepoRestriction `json:"items"`
}

// Policy bounds the sources and identities used in its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=policies
type Policy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// RequireServiceAccount refuses bundles without a service account.
	// +optional
	RequireServiceAccount bool `json:"requireServiceAccount,omitempty"`
	// +nullable
	// +optional
	AllowedServiceAccounts []string `json:"allowedServiceAccounts,omitempty"`
	// AllowNamespaceCreation lets bundles with a service account create their namespace.
	// +optional
	AllowNamespaceCreation bool `json:"allowNamespaceCreation,omitempty"`
	// +optional
	GitRepo *GitRepoPolicy `json:"gitRepo,omitempty"`
	// +optional
	HelmOp *HelmOpPolicy `json:"helmOp,omitempty"`
}

// GitRepoPolicy bounds GitRepos. Patterns match the whole URL.
type GitRepoPolicy struct {
	// +optional
	DefaultServiceAccount string `json:"defaultServiceAccount,omitempty"`
	// +optional
	DefaultClientSecretName string `json:"defaultClientSecretName,omitempty"`
	// +nullable
	// +optional
	AllowedClientSecretNames []string `json:"allowedClientSecretNames,omitempty"`
	// +nullable
	// +optional
	AllowedRepoPatterns []string `json:"allowedRepoPatterns,omitempty"`
}

// HelmOpPolicy bounds HelmOps. Patterns match the whole URL or name.
type HelmOpPolicy struct {
	// +optional
	DefaultServiceAccount string `json:"defaultServiceAccount,omitempty"`
	// +optional
	DefaultHelmSecretName string `json:"defaultHelmSecretName,omitempty"`
	// +nullable
	// +optional
	AllowedHelmSecretNames []string `json:"allowedHelmSecretNames,omitempty"`
	// +nullable
	// +optional
	AllowedHelmRepoPatterns []string `json:"allowedHelmRepoPatterns,omitempty"`
	// +nullable
	// +optional
	AllowedChartPatterns []string `json:"allowedChartPatterns,omitempty"`
}

// PolicyList is a list of Policies.
//
// +kubebuilder:object:root=true
type PolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Policy `json:"items"`
}
