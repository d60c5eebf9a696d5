package namespace

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func TestAllowed(t *testing.T) {
	blue := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
	with := func(team string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"team": team}}}
	}
	for name, test := range map[string]struct {
		existing   *corev1.Namespace
		selector   *metav1.LabelSelector
		wantReason string
	}{
		"matches":         {with("blue"), blue, ""},
		"does not match":  {with("red"), blue, "NamespaceNotAllowed"},
		"is not there":    {nil, blue, "NamespaceNotAllowed"},
		"empty matches":   {with("red"), &metav1.LabelSelector{}, ""},
		"wrong selector":  {with("blue"), &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}, "InvalidSelector"},
		"empty, no space": {nil, &metav1.LabelSelector{}, "NamespaceNotAllowed"},
	} {
		err := allowed(test.existing, "n", test.selector)
		if test.wantReason == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if fault.ReasonOf(err) != test.wantReason {
			t.Errorf("%s: %v, want reason %s", name, err, test.wantReason)
		}
	}
}

func TestHasAll(t *testing.T) {
	existing := func(fields string) *corev1.Namespace {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "n", Labels: map[string]string{"team": "blue", "theirs": "x"}, Annotations: map[string]string{"note": "hello"},
		}}
		if fields != "" {
			namespace.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(fields)}}
		}
		return namespace
	}
	both := `{"f:metadata":{"f:annotations":{"f:note":{}},"f:labels":{"f:team":{}}}}`
	for name, test := range map[string]struct {
		existing            *corev1.Namespace
		labels, annotations map[string]string
		want                bool
	}{
		"as wanted":           {existing(both), map[string]string{"team": "blue"}, map[string]string{"note": "hello"}, true},
		"not there":           {nil, map[string]string{"team": "blue"}, nil, false},
		"not by us":           {existing(""), map[string]string{"team": "blue"}, map[string]string{"note": "hello"}, false},
		"another value":       {existing(both), map[string]string{"team": "red"}, map[string]string{"note": "hello"}, false},
		"one was dropped":     {existing(both), map[string]string{"team": "blue"}, nil, false},
		"one more, of theirs": {existing(both), map[string]string{"team": "blue", "theirs": "x"}, map[string]string{"note": "hello"}, false},
	} {
		options := fleet.BundleDeploymentOptions{NamespaceLabels: test.labels, NamespaceAnnotations: test.annotations}
		if got := hasAll(test.existing, options, "m"); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestIsProtected(t *testing.T) {
	for name, want := range map[string]bool{"default": true, "kube-system": true, "cattle-fleet-system": true, "web": false, "kube": false} {
		if IsProtected(name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}
