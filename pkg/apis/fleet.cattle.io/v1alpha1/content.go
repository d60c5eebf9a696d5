package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Content is the files of a bundle, stored once under a name made from their digest.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,path=contents
// +kubebuilder:subresource:status
type Content struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Content is the gzip of the manifest's JSON.
	// +nullable
	// +optional
	Content []byte `json:"content,omitempty"`
	// SHA256Sum is the digest the name is made from, in hex.
	// +optional
	SHA256Sum string `json:"sha256sum,omitempty"`
	// Chunks name the Contents whose bytes, one after the other, are the gzip, where that is too long for one
	// object (our addition). Content is empty then.
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=253
	// +optional
	Chunks []string `json:"chunks,omitempty"`
	// +optional
	Status ContentStatus `json:"status,omitempty"`
}

// ContentStatus counts the users of a Content.
type ContentStatus struct {
	// ReferenceCount of BundleDeployments.
	// +optional
	ReferenceCount int `json:"referenceCount,omitempty"`
}

// ContentList is a list of Contents.
//
// +kubebuilder:object:root=true
type ContentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Content `json:"items"`
}
