package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ImageScan looks for new tags of an image and writes them to a GitRepo.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=imagescans
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name="Latest",type=string,JSONPath=`.status.latestTag`
type ImageScan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ImageScanSpec   `json:"spec,omitempty"`
	Status ImageScanStatus `json:"status,omitempty"`
}

// ImageScanList is a list of ImageScans.
//
// +kubebuilder:object:root=true
type ImageScanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ImageScan `json:"items"`
}

// ImageScanSpec names the image and how to choose a tag.
type ImageScanSpec struct {
	// TagName is the marker's name in the repository's files.
	// +nullable
	// +optional
	TagName string `json:"tagName,omitempty"`
	// GitRepoName in the same namespace.
	// +nullable
	// +optional
	GitRepoName string `json:"gitrepoName,omitempty"`
	// Image without a tag.
	// +nullable
	Image string `json:"image"`
	// Interval between scans.
	// +nullable
	Interval Duration `json:"interval"`
	// SecretRef names the registry's credentials.
	// +nullable
	// +optional
	SecretRef *LocalObjectReference `json:"secretRef,omitempty"`
	// Suspend stops scanning.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// +optional
	Policy ImagePolicyChoice `json:"policy,omitempty"`
}

// ImagePolicyChoice is one way to choose a tag.
type ImagePolicyChoice struct {
	// +nullable
	// +optional
	SemVer *SemVerPolicy `json:"semver,omitempty"`
	// +nullable
	// +optional
	Alphabetical *AlphabeticalPolicy `json:"alphabetical,omitempty"`
}

// SemVerPolicy chooses the highest version in a range.
type SemVerPolicy struct {
	// +nullable
	// +optional
	Range string `json:"range,omitempty"`
}

// AlphabeticalPolicy chooses the first or last tag.
type AlphabeticalPolicy struct {
	// Order is asc or desc.
	// +nullable
	// +optional
	Order string `json:"order,omitempty"`
}

// ImageScanStatus is what the last scan found.
type ImageScanStatus struct {
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// +optional
	LastScanTime metav1.Time `json:"lastScanTime,omitempty,omitzero"`
	// +optional
	LatestImage string `json:"latestImage,omitempty"`
	// +optional
	LatestTag string `json:"latestTag,omitempty"`
	// +optional
	LatestDigest string `json:"latestDigest,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	CanonicalImageName string `json:"canonicalImageName,omitempty"`
}
