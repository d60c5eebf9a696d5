package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func owned(by string, labels map[string]string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: "x", Labels: labels}
	if by != "" {
		meta.OwnerReferences = []metav1.OwnerReference{{Kind: "Owner", Name: by, UID: types.UID(by), Controller: ptr.To(true)}}
	}
	return meta
}

func TestMayTake(t *testing.T) {
	managed := map[string]string{fleet.ManagedLabel: "true"}
	ours := &corev1.Secret{ObjectMeta: owned("us", managed)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{fleet.ClusterAnnotation: "meadow"}}}
	cases := map[string]struct {
		current, wanted client.Object
		want            bool
	}{
		"ours":                        {ours, ours, true},
		"another owner's":             {&corev1.Secret{ObjectMeta: owned("them", managed)}, ours, false},
		"nobody's, managed":           {&corev1.Secret{ObjectMeta: owned("", managed)}, ours, true},
		"nobody's, a person's":        {&corev1.Secret{ObjectMeta: owned("", nil)}, ours, false},
		"namespace of the cluster":    {namespace, namespace, true},
		"namespace, bare":             {&corev1.Namespace{}, namespace, true},
		"namespace of another":        {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{fleet.ClusterAnnotation: "hill"}}}, namespace, false},
		"namespace that has an owner": {&corev1.Namespace{ObjectMeta: owned("them", nil)}, namespace, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := mayTake(c.current, c.wanted); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestBringInOrder(t *testing.T) {
	role := rbacv1.RoleRef{Kind: "ClusterRole", Name: "agent"}
	cases := map[string]struct {
		current, wanted, want client.Object
		wantReplace           bool
	}{
		"what others added stays": {
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"theirs": "1", "ours": "0"}, Annotations: map[string]string{"a": "b"}}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"ours": "1"}}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"theirs": "1", "ours": "1"}, Annotations: map[string]string{"a": "b"}}},
			false,
		},
		"an object without owner gets it": {
			&corev1.ServiceAccount{ObjectMeta: owned("", nil)}, &corev1.ServiceAccount{ObjectMeta: owned("us", nil)},
			&corev1.ServiceAccount{ObjectMeta: owned("us", nil)}, false,
		},
		"a service account's token stays": {
			&corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte("t")}},
			&corev1.Secret{Type: corev1.SecretTypeServiceAccountToken},
			&corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte("t")}}, false,
		},
		"values are replaced": {
			&corev1.Secret{Data: map[string][]byte{"values": []byte("old"), "more": nil}}, &corev1.Secret{Data: map[string][]byte{"values": []byte("new")}},
			&corev1.Secret{Data: map[string][]byte{"values": []byte("new")}}, false,
		},
		"rights are exactly ours": {
			&rbacv1.Role{Rules: []rbacv1.PolicyRule{{Verbs: []string{"*"}}}}, &rbacv1.Role{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}},
			&rbacv1.Role{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}}, false,
		},
		"another role cannot be changed": {
			&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"}}, &rbacv1.RoleBinding{RoleRef: role},
			&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"}}, true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := bringInOrder(c.current, c.wanted); got != c.wantReplace {
				t.Errorf("must replace: %v", got)
			}
			if diff := cmp.Diff(c.want, c.current); diff != "" {
				t.Error(diff)
			}
		})
	}
}
