package join

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// valuesKey of the values Secret.
const valuesKey = "values"

// Hub is where agents find the hub.
type Hub struct {
	SystemNamespace string
	APIServerURL    string
	// APIServerCA in PEM; empty when the member trusts the server's authority anyway.
	APIServerCA []byte
}

// Expires returns when a token ends; nil means never.
func Expires(token *fleet.ClusterRegistrationToken) *metav1.Time {
	if token.Spec.TTL == nil || token.Spec.TTL.Duration == 0 {
		return nil
	}
	return &metav1.Time{Time: token.CreationTimestamp.Add(token.Spec.TTL.Duration)}
}

// Expired says whether a token has ended.
func Expired(token *fleet.ClusterRegistrationToken, now time.Time) bool {
	expires := Expires(token)
	return expires != nil && !now.Before(expires.Time)
}

// TokenAccount returns the service account behind a token: permission to ask, and no more.
func TokenAccount(token *fleet.ClusterRegistrationToken) types.NamespacedName {
	return types.NamespacedName{Namespace: token.Namespace, Name: names.SafeConcat(token.Name, string(token.UID))}
}

// TokenSecret returns the name of the Secret that holds the service account's token.
func TokenSecret(token *fleet.ClusterRegistrationToken) string {
	return names.SafeConcat(token.Name, string(token.UID), "token")
}

// TokenIdentity is everything that makes a registration token work. All of it is owned by the token.
type TokenIdentity struct {
	Account *corev1.ServiceAccount
	Role    *rbacv1.Role
	Binding *rbacv1.RoleBinding
	Secret  *corev1.Secret
}

// IdentityOf returns the objects behind a token. Its service account may create ClusterRegistrations
// in the token's namespace; it may read nothing there.
func IdentityOf(token *fleet.ClusterRegistrationToken) TokenIdentity {
	account := TokenAccount(token)
	meta := tokenMeta(token, account.Name)
	role, binding := roleFor(tokenMeta(token, names.SafeConcat(account.Name, "role")), names.SafeConcat(account.Name, "to", "role"), account,
		rbacv1.PolicyRule{APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"}, Verbs: []string{"create"}})
	secret := &corev1.Secret{
		ObjectMeta: tokenMeta(token, TokenSecret(token)),
		Type:       corev1.SecretTypeServiceAccountToken,
	}
	secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: account.Name}
	return TokenIdentity{
		Account: &corev1.ServiceAccount{ObjectMeta: meta, AutomountServiceAccountToken: ptr.To(false)},
		Role:    role, Binding: binding, Secret: secret,
	}
}

func tokenMeta(token *fleet.ClusterRegistrationToken, name string) metav1.ObjectMeta {
	labels := managed()
	labels[fleet.RegistrationTokenLabel] = names.SafeConcat(token.Name)
	return metav1.ObjectMeta{
		Namespace: token.Namespace, Name: name, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(token, fleet.GroupVersion.WithKind("ClusterRegistrationToken")),
		},
	}
}

// Values returns the Secret from which a person installs the agent's chart: the key values holds the
// chart's values as YAML, with the service account's token in them.
func Values(token *fleet.ClusterRegistrationToken, hub Hub, credential string) (*corev1.Secret, error) {
	values := map[string]any{
		"clusterNamespace":            token.Namespace,
		"apiServerURL":                hub.APIServerURL,
		"apiServerCA":                 string(hub.APIServerCA),
		"token":                       credential,
		"tokenName":                   token.Name,
		"systemRegistrationNamespace": names.RegistrationNamespace(hub.SystemNamespace),
	}
	if hub.SystemNamespace != cluster.DefaultSystemNamespace {
		values["internal"] = map[string]any{"systemNamespace": hub.SystemNamespace}
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("write values of token %s/%s: %w", token.Namespace, token.Name, err)
	}
	return &corev1.Secret{
		ObjectMeta: tokenMeta(token, token.Name),
		Type:       fleet.RegistrationValuesSecretType,
		Data:       map[string][]byte{valuesKey: text},
	}, nil
}
