package join

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// CredentialLifetime is how long the credential of an agent that joins with a service account waits to
// be fetched; upstream's agents give up before.
const CredentialLifetime = 40 * time.Minute

// Account is what an agent of protocol 0 (upstream's) gets in place of a certificate: a service account
// in its cluster's namespace, with the rights of an agent there.
type Account struct {
	Account *corev1.ServiceAccount
	// Token is filled in by the API server.
	Token *corev1.Secret
	// Deployments gives an agent's rights in the cluster's namespace, Contents reading of contents.
	Deployments *rbacv1.RoleBinding
	Contents    *rbacv1.ClusterRoleBinding
	// StatusRole and StatusBinding let the agent write its last-seen time into its Cluster.
	StatusRole    *rbacv1.Role
	StatusBinding *rbacv1.RoleBinding
}

// AccountFor returns the account of a registration. Only what is in the registration's own namespace can
// have it as owner; the rest names it in annotations and has to be removed with it.
func AccountFor(registration *fleet.ClusterRegistration, clusterNamespace, clusterName string) Account {
	name := names.SafeConcat(registration.Name, string(registration.UID))
	meta := accountMeta(registration, clusterNamespace, name)
	account := &corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: ptr.To(false)}
	token := &corev1.Secret{
		ObjectMeta: accountMeta(registration, clusterNamespace, names.SafeConcat(name, "token")),
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	token.Annotations[corev1.ServiceAccountNameKey] = name
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: clusterNamespace, Name: name}
	statusMeta := accountMeta(registration, registration.Namespace, names.SafeConcat(name, "status"))
	statusMeta.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(registration, fleet.GroupVersion.WithKind("ClusterRegistration")),
	}
	role, binding := roleFor(statusMeta, statusMeta.Name, types.NamespacedName{Namespace: clusterNamespace, Name: name}, rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters/status"},
		ResourceNames: []string{clusterName}, Verbs: []string{"patch"},
	})
	return Account{
		Account: account, Token: token,
		Deployments: &rbacv1.RoleBinding{
			ObjectMeta: accountMeta(registration, clusterNamespace, name),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.AgentClusterRole},
			Subjects:   []rbacv1.Subject{subject},
		},
		Contents: &rbacv1.ClusterRoleBinding{
			ObjectMeta: accountMeta(registration, "", names.SafeConcat(name, "content")),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.ContentClusterRole},
			Subjects:   []rbacv1.Subject{subject},
		},
		StatusRole: role, StatusBinding: binding,
	}
}

// Credential is the handover of an account to its agent: a Secret in the namespace for registrations
// that only the service account of the registration's token may read.
type Credential struct {
	Secret  *corev1.Secret
	Role    *rbacv1.Role
	Binding *rbacv1.RoleBinding
}

// CredentialFor returns the handover of an account's token. Reader is the service account of the
// registration token.
func CredentialFor(registration *fleet.ClusterRegistration, clusterNamespace, clusterName string, hub Hub, reader types.NamespacedName, token []byte) Credential {
	namespace := names.RegistrationNamespace(hub.SystemNamespace)
	secret := &corev1.Secret{
		ObjectMeta: accountMeta(registration, namespace, names.RegistrationCredential(registration.Spec.ClientID, registration.Spec.ClientRandom)),
		Type:       fleet.AgentCredentialSecretType,
		Data: map[string][]byte{
			"token":               token,
			"deploymentNamespace": []byte(clusterNamespace),
			"clusterNamespace":    []byte(registration.Namespace),
			"clusterName":         []byte(clusterName),
			"systemNamespace":     []byte(hub.SystemNamespace),
		},
	}
	meta := accountMeta(registration, namespace, names.SafeConcat(secret.Name, "creds"))
	role, binding := roleFor(meta, meta.Name, reader, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{secret.Name}, Verbs: []string{"get"},
	})
	return Credential{Secret: secret, Role: role, Binding: binding}
}

func accountMeta(registration *fleet.ClusterRegistration, namespace, name string) metav1.ObjectMeta {
	labels := managed()
	labels[fleet.RegistrationTokenLabel] = registration.Labels[fleet.RegistrationTokenLabel]
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: labels,
		Annotations: map[string]string{
			RegistrationAnnotation:          registration.Name,
			RegistrationNamespaceAnnotation: registration.Namespace,
		},
	}
}
