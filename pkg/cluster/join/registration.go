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
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Reasons for which a registration is rejected.
const (
	ReasonTokenInvalid     = "TokenInvalid"
	ReasonTokenExpired     = "TokenExpired"
	ReasonIdentityMismatch = "IdentityMismatch"
	ReasonInvalidCSR       = "InvalidCSR"
	// ReasonVersionIncompatible is an agent that speaks a protocol the hub does not accept.
	ReasonVersionIncompatible = "VersionIncompatible"
	// ReasonClusterInUse is a Cluster whose agent is there.
	ReasonClusterInUse = "ClusterInUse"
)

// maxQuoted bounds what a refusal quotes of a registration.
const maxQuoted = 128

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

// Bounds of what a registration may say. Its clientID becomes part of a Cluster and an index, its labels
// those of the Cluster.
const (
	maxClientID      = 256
	maxClusterLabels = 128
)

// CheckRequest refuses a request to join that does not say who asks, wants a name no Cluster can have, or
// says too much.
func CheckRequest(registration *fleet.ClusterRegistration) error {
	spec := registration.Spec
	if spec.ClientID == "" {
		return fault.New(fault.Denied, ReasonIdentityMismatch, "the registration has no clientID")
	}
	if len(spec.ClientID) > maxClientID || len(spec.ClientRandom) > maxClientID {
		return fault.New(fault.Denied, ReasonIdentityMismatch, "clientID and clientRandom may have %d characters, no more", maxClientID)
	}
	if len(spec.ClusterLabels) > maxClusterLabels {
		return fault.New(fault.Denied, ReasonIdentityMismatch, "the registration has more than %d labels for its Cluster", maxClusterLabels)
	}
	if spec.ClusterName != "" && len(validation.IsDNS1123Subdomain(spec.ClusterName)) > 0 {
		return fault.New(fault.Denied, ReasonIdentityMismatch, "%q is no name for a Cluster", status.Cut(spec.ClusterName, maxQuoted))
	}
	return nil
}

// CheckAgent refuses an agent whose id could be read as more than one part of a user name.
func CheckAgent(registration *fleet.ClusterRegistration) error {
	if id := registration.Spec.AgentID; id != "" && len(validation.IsDNS1123Label(id)) > 0 {
		return fault.New(fault.Denied, ReasonIdentityMismatch, "agentID %q is not a DNS label", status.Cut(id, maxQuoted))
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

// CheckSilent refuses to give a Cluster away while it has an agent that is heard: knowing a clientID must
// not be enough to take a living agent's place. An agent that is installed anew asks again until the former
// one is missed. Agents without a lease (upstream's) are exempt, since nobody could tell for an hour that
// they are gone.
func CheckSilent(member *fleet.Cluster) error {
	if member.Status.Phase != fleet.ClusterReady || member.Status.Versions == nil || member.Status.Versions.Protocol < 1 {
		return nil
	}
	return fault.New(fault.Denied, ReasonClusterInUse,
		"Cluster %s/%s has an agent that reports: if that one is to be replaced, stop it, and register again when the hub misses it",
		member.Namespace, member.Name)
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
		agentID = names.DefaultAgentID
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
// one supersedes what the same client asked before for the same Cluster; a refused one only older refusals,
// so that an agent that keeps asking leaves one. The Cluster counts as the hub has noted it: who asks may
// change what he says of himself at any time.
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
	if !refused && (!registration.Status.Granted || registration.Status.ClusterName != other.Status.ClusterName) {
		return false
	}
	if other.CreationTimestamp.Equal(&registration.CreationTimestamp) {
		return registration.Status.Granted && refused
	}
	return other.CreationTimestamp.Before(&registration.CreationTimestamp)
}
