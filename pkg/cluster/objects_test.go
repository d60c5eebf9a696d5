package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestOnlyTheOwnNamespaceIsBelieved(t *testing.T) {
	own := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "own"}}
	other := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "other"}}
	for name, c := range map[string]struct{ stored, want string }{
		"not made yet":        {"", ""},
		"its own":             {Namespace(own).Name, Namespace(own).Name},
		"another's":           {Namespace(other).Name, ""},
		"none of a cluster's": {"kube-system", ""},
	} {
		own.Status.Namespace = c.stored
		if got := ReadyNamespace(own); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	renamed := Namespace(other)
	renamed.Name = Namespace(own).Name
	for name, c := range map[string]struct {
		namespace *corev1.Namespace
		want      bool
	}{
		"made for it":                     {Namespace(own), true},
		"made for another":                {Namespace(other), false},
		"of its name, made for another":   {renamed, false},
		"of its name, made by a stranger": {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: renamed.Name}}, false},
	} {
		if got := Owns(own, c.namespace); got != c.want {
			t.Errorf("%s: owned is %v", name, got)
		}
	}
}
