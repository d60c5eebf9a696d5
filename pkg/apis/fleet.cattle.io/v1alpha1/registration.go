package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterRegistration is an agent's request to join.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterregistrations
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster-Name",type=string,JSONPath=`.status.clusterName`
// +kubebuilder:printcolumn:name="Labels",type=string,JSONPath=`.spec.clusterLabels`
type ClusterRegistration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterRegistrationSpec   `json:"spec,omitempty"`
	Status ClusterRegistrationStatus `json:"status,omitempty"`
}

// ClusterRegistrationList is a list of ClusterRegistrations.
//
// +kubebuilder:object:root=true
type ClusterRegistrationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterRegistration `json:"items"`
}

// ClusterRegistrationSpec is what the agent says of its cluster. The fields after ClusterLabels are our
// additions; an upstream agent leaves them out and gets a service account instead of a certificate.
type ClusterRegistrationSpec struct {
	// ClientID is the same for every registration of one cluster.
	// +nullable
	// +optional
	ClientID string `json:"clientID,omitempty"`
	// ClientRandom is different in every registration.
	// +nullable
	// +optional
	ClientRandom string `json:"clientRandom,omitempty"`
	// ClusterLabels the Cluster gets when it is made.
	// +nullable
	// +optional
	ClusterLabels map[string]string `json:"clusterLabels,omitempty"`

	// ClusterName wanted for a Cluster that is made.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// AgentVersion of the program that asks.
	// +optional
	AgentVersion string `json:"agentVersion,omitempty"`
	// KubernetesVersion of the member.
	// +optional
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// ProtocolVersion the agent speaks; 0 is upstream's.
	// +optional
	ProtocolVersion int `json:"protocolVersion,omitempty"`
	// AgentID tells several agents of one cluster apart; it is the last part of the certificate's name.
	// +optional
	AgentID string `json:"agentID,omitempty"`
	// CSR is a PEM certificate request for the identity in status; set once status.identity is known.
	// +optional
	CSR []byte `json:"csr,omitempty"`
}

// RegistrationState is how far a registration went.
type RegistrationState string

// The states of a registration.
const (
	RegistrationPending  RegistrationState = "Pending"
	RegistrationApproved RegistrationState = "Approved"
	RegistrationGranted  RegistrationState = "Granted"
	RegistrationRejected RegistrationState = "Rejected"
)

// ClusterRegistrationStatus is the hub's answer. The fields after Granted are our additions.
type ClusterRegistrationStatus struct {
	// +nullable
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// +optional
	Granted bool `json:"granted,omitempty"`

	// +optional
	State RegistrationState `json:"state,omitempty"`
	// Reason of a rejection, in one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// ClusterNamespace on the hub that holds the cluster's BundleDeployments.
	// +optional
	ClusterNamespace string `json:"clusterNamespace,omitempty"`
	// Identity is the user and the groups the certificate request must name.
	// +optional
	Identity *AgentIdentity `json:"identity,omitempty"`
	// CSRName is the CertificateSigningRequest made from spec.csr.
	// +optional
	CSRName string `json:"csrName,omitempty"`
	// Certificate is the signed client certificate, PEM.
	// +optional
	Certificate []byte `json:"certificate,omitempty"`
	// CertificateExpires is its end.
	// +optional
	CertificateExpires *metav1.Time `json:"certificateExpires,omitempty"`
}

// AgentIdentity is a user name with its groups.
type AgentIdentity struct {
	User   string   `json:"user"`
	Groups []string `json:"groups"`
}

// ClusterRegistrationToken lets agents ask to join.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=clusterregistrationtokens
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Secret-Name",type=string,JSONPath=`.status.secretName`
type ClusterRegistrationToken struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterRegistrationTokenSpec   `json:"spec,omitempty"`
	Status ClusterRegistrationTokenStatus `json:"status,omitempty"`
}

// ClusterRegistrationTokenList is a list of ClusterRegistrationTokens.
//
// +kubebuilder:object:root=true
type ClusterRegistrationTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterRegistrationToken `json:"items"`
}

// ClusterRegistrationTokenSpec bounds the token.
type ClusterRegistrationTokenSpec struct {
	// TTL counts from creation; nil or 0 never ends.
	// +nullable
	// +optional
	TTL *Duration `json:"ttl,omitempty"`
}

// ClusterRegistrationTokenStatus says where the token's values are.
type ClusterRegistrationTokenStatus struct {
	// Expires is creation plus TTL.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// SecretName holds the values for the agent's chart under the key values.
	// +nullable
	// +optional
	SecretName string `json:"secretName,omitempty"`
}
