package join

import (
	"maps"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// Reasons for which a registration is rejected.
const (
	ReasonTokenInvalid     = "TokenInvalid"
	ReasonTokenExpired     = "TokenExpired"
	ReasonIdentityMismatch = "IdentityMismatch"
	ReasonInvalidCSR       = "InvalidCSR"
	// ReasonVersionIncompatible is an agent that speaks a protocol the hub does not accept.
	ReasonVersionIncompatible = "VersionIncompatible"
)

// DefaultAgentID is the last part of the user name of a cluster's only agent.
const DefaultAgentID = "fleet-agent"

// CheckToken refuses a registration that was not made with a token that is valid now. The token is the
// one the registration's label names, nil when there is none.
func CheckToken(registration *fleet.ClusterRegistration, token *fleet.ClusterRegistrationToken, now time.Time) error {
	name := registration.Labels[fleet.RegistrationTokenLabel]
	switch {
	case name == "":
		return fault.New(fault.Denied, ReasonTokenInvalid, "the registration names no token: its label %s is missing", fleet.RegistrationTokenLabel)
	case token == nil || token.DeletionTimestamp != nil:
		return fault.New(fault.Denied, ReasonTokenInvalid,
			"there is no registration token %q in namespace %s: make a new one and install the agent with its values", name, registration.Namespace)
	case Expired(token, now):
		return fault.New(fault.Denied, ReasonTokenExpired, "registration token %q expired at %s: make a new one and install the agent with its values",
			name, Expires(token).UTC().Format(time.RFC3339))
	}
	return nil
}

// CheckRequest refuses a request to join that does not say who asks, or wants a name no Cluster can have.
func CheckRequest(registration *fleet.ClusterRegistration) error {
	spec := registration.Spec
	if spec.ClientID == "" {
		return fault.New(fault.Denied, ReasonIdentityMismatch, "the registration has no clientID")
	}
	if spec.ClusterName != "" && len(validation.IsDNS1123Subdomain(spec.ClusterName)) > 0 {
		return fault.New(fault.Denied, ReasonIdentityMismatch, "%q is no name for a Cluster", spec.ClusterName)
	}
	return nil
}

// CheckAgent refuses an agent whose id could be read as more than one part of a user name.
func CheckAgent(registration *fleet.ClusterRegistration) error {
	if id := registration.Spec.AgentID; id != "" && len(validation.IsDNS1123Label(id)) > 0 {
		return fault.New(fault.Denied, ReasonIdentityMismatch, "agentID %q is not a DNS label", id)
	}
	return nil
}

// CheckOwner refuses to give a Cluster to a client that it does not belong to. A Cluster without
// clientID belongs to nobody who asks: a person sets the clientID to let an agent have it.
func CheckOwner(registration *fleet.ClusterRegistration, member *fleet.Cluster) error {
	switch member.Spec.ClientID {
	case registration.Spec.ClientID:
		return nil
	case "":
		return fault.New(fault.Denied, ReasonIdentityMismatch,
			"Cluster %s/%s exists and has no clientID: set its spec.clientID to the agent's, or choose another name", member.Namespace, member.Name)
	}
	return fault.New(fault.Denied, ReasonIdentityMismatch,
		"Cluster %s/%s belongs to another client: choose another name, or delete that Cluster", member.Namespace, member.Name)
}

// ForRegistration returns the Cluster to make for a client that has none. With ignoreLabels the agent's
// labels are all dropped.
func ForRegistration(registration *fleet.ClusterRegistration, ignoreLabels bool) *fleet.Cluster {
	name := registration.Spec.ClusterName
	if name == "" {
		name = names.ClusterForClient(registration.Spec.ClientID)
	}
	labels := map[string]string{}
	if !ignoreLabels {
		labels = cluster.Labels(registration.Spec.ClusterLabels)
	}
	member := &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: registration.Namespace, Name: name, Finalizers: []string{fleet.ClusterFinalizer}},
		Spec:       fleet.ClusterSpec{ClientID: registration.Spec.ClientID},
	}
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, cluster.MissingLabels(member))
	member.Labels = labels
	return member
}

// Identity returns the user and groups that a registration's certificate carries.
func Identity(clusterNamespace, agentID string) *fleet.AgentIdentity {
	if agentID == "" {
		agentID = DefaultAgentID
	}
	return &fleet.AgentIdentity{
		User:   names.AgentUser(clusterNamespace, agentID),
		Groups: []string{names.AgentGroup(clusterNamespace), names.AgentsGroup},
	}
}

// Answer returns the rights by which the agent that asked can read the hub's answer and add its
// certificate request: on this one registration, for the service account of its token.
func Answer(registration *fleet.ClusterRegistration, token *fleet.ClusterRegistrationToken) (*rbacv1.Role, *rbacv1.RoleBinding) {
	name := names.SafeConcat(registration.Name, string(registration.UID))
	meta := metav1.ObjectMeta{
		Namespace: registration.Namespace, Name: name, Labels: managed(),
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(registration, fleet.GroupVersion.WithKind("ClusterRegistration")),
		},
	}
	return roleFor(meta, name, TokenAccount(token), rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"},
		ResourceNames: []string{registration.Name}, Verbs: []string{"get", "patch"},
	})
}

// Superseded returns those of others that are no longer needed once registration is decided. A granted
// one supersedes what the same client asked before; a refused one only older refusals, so that an agent
// that keeps asking leaves one.
func Superseded(registration *fleet.ClusterRegistration, others []fleet.ClusterRegistration) []fleet.ClusterRegistration {
	var old []fleet.ClusterRegistration
	for i := range others {
		other := &others[i]
		same := other.UID != registration.UID && other.Spec.ClientID == registration.Spec.ClientID && other.Spec.AgentID == registration.Spec.AgentID
		if same && supersedes(registration, other) {
			old = append(old, *other)
		}
	}
	return old
}

// supersedes decides between two registrations of one client. Creation times count seconds: of two in
// one second a granted one supersedes a refused one, and otherwise both stay until there is a later one,
// because which of them the agent uses cannot be told.
func supersedes(registration, other *fleet.ClusterRegistration) bool {
	refused := other.Status.State == fleet.RegistrationRejected
	if !registration.Status.Granted && !refused {
		return false
	}
	if other.CreationTimestamp.Equal(&registration.CreationTimestamp) {
		return registration.Status.Granted && refused
	}
	return other.CreationTimestamp.Before(&registration.CreationTimestamp)
}
