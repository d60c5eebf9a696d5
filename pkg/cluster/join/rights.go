package join

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// managed returns the labels of everything the engine makes and may remove.
func managed() map[string]string { return map[string]string{fleet.ManagedLabel: "true"} }

// roleFor returns a Role with a binding of the same name that gives it to one service account. The
// API server makes no such object atomic with its owner, so that both carry the owner by themselves.
func roleFor(meta metav1.ObjectMeta, bindingName string, account types.NamespacedName, rules ...rbacv1.PolicyRule) (*rbacv1.Role, *rbacv1.RoleBinding) {
	bindingMeta := *meta.DeepCopy()
	bindingMeta.Name = bindingName
	return &rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: bindingMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
}
