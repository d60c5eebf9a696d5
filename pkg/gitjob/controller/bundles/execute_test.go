package bundles

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func TestEqualData(t *testing.T) {
	type data = map[string][]byte
	for name, test := range map[string]struct {
		a, b data
		want bool
	}{
		"none":          {nil, data{}, true},
		"same":          {data{"a": []byte("1")}, data{"a": []byte("1")}, true},
		"other value":   {data{"a": []byte("1")}, data{"a": []byte("2")}, false},
		"other key":     {data{"a": nil}, data{"b": nil}, false},
		"more":          {data{"a": nil}, data{"a": nil, "b": nil}, false},
		"empty and nil": {data{"a": nil}, data{"a": {}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if equalData(test.a, test.b) != test.want || equalData(test.b, test.a) != test.want {
				t.Errorf("want %v", test.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	resource := schema.GroupResource{Group: fleet.GroupVersion.Group, Resource: "bundles"}
	for name, test := range map[string]struct {
		err  error
		want fault.Class
	}{
		"accepted":    {nil, ""},
		"invalid":     {apierrors.NewInvalid(schema.GroupKind{}, "one", nil), fault.Stalled},
		"too large":   {apierrors.NewRequestEntityTooLargeError("limit"), fault.Stalled},
		"bad request": {apierrors.NewBadRequest("what"), fault.Stalled},
		"conflict":    {apierrors.NewConflict(resource, "one", errors.New("x")), fault.Transient},
		"forbidden":   {apierrors.NewForbidden(resource, "one", errors.New("quota")), fault.Transient},
		"no answer":   {errors.New("EOF"), fault.Transient},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fault.ClassOf(refused("create", want(t, "one", "").Bundle, test.err)); got != test.want {
				t.Errorf("class %q, want %q", got, test.want)
			}
		})
	}
}

func TestPlanValues(t *testing.T) {
	with := want(t, "one", "")
	with.Values = map[string][]byte{"values.yaml": []byte("{}")}
	without := want(t, "one", "")
	ours := &corev1.Secret{Type: fleet.BundleValuesSecretType, Data: with.Values}
	older := &corev1.Secret{Type: fleet.BundleValuesSecretType, Data: map[string][]byte{"values.yaml": []byte("x")}}
	theirs := &corev1.Secret{Type: corev1.SecretTypeOpaque}
	for name, test := range map[string]struct {
		want    Wanted
		current *corev1.Secret
		step    valuesStep
		class   fault.Class
	}{
		"none wanted, none there":   {without, nil, valuesKeep, ""},
		"none wanted, ours there":   {without, ours, valuesDelete, ""},
		"none wanted, theirs there": {without, theirs, valuesKeep, ""},
		"wanted, none there":        {with, nil, valuesCreate, ""},
		"wanted, the same there":    {with, ours, valuesKeep, ""},
		"wanted, older there":       {with, older, valuesUpdate, ""},
		"wanted, theirs there":      {with, theirs, valuesKeep, fault.Stalled},
	} {
		t.Run(name, func(t *testing.T) {
			step, err := planValues(test.want, test.current, test.current != nil)
			if step != test.step || fault.ClassOf(err) != test.class {
				t.Errorf("step %d, error %v", step, err)
			}
		})
	}
}

// What the API server made of a Bundle is what the cache will show, and no reason to write again.
func TestDigestIsThatOfTheAnswer(t *testing.T) {
	one := want(t, "one", "a")
	answer := one.Bundle.DeepCopy()
	answer.Spec.DefaultNamespace = "filled-in"
	digest := digestOf(answer, one.Summary)
	if digest == one.Summary.SpecDigest {
		t.Fatal("the digest is that of the request")
	}
	shown := answer.DeepCopy()
	if err := content.Trim(shown); err != nil {
		t.Fatal(err)
	}
	if !Intact(map[string]*fleet.Bundle{"one": shown}, map[string]string{"one": digest}) {
		t.Error("the stored Bundle counts as edited")
	}
}
