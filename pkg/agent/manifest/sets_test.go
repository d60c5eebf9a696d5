package manifest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestSets(t *testing.T) {
	object := func(name string, strategy fleet.ApplyStrategy) *unstructured.Unstructured {
		made := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		made.SetName(name)
		if strategy != "" {
			made.SetAnnotations(map[string]string{fleet.ApplyAnnotation: `{"strategy":"` + string(strategy) + `"}`})
		}
		return made
	}
	objects := []*unstructured.Unstructured{object("plain", ""), object("once", fleet.ApplyCreateOnly), object("looked-at", fleet.ApplyReadOnly)}
	for name, test := range map[string]struct {
		got  map[Key]bool
		want []bool
	}{
		"keys":    {Keys(objects), []bool{true, true, true}},
		"claimed": {Claimed(objects), []bool{true, false, false}},
		"held":    {Held(objects), []bool{true, true, false}},
	} {
		for i, object := range objects {
			if test.got[KeyOf(object)] != test.want[i] {
				t.Errorf("%s: %s is %t", name, object.GetName(), test.got[KeyOf(object)])
			}
		}
	}
}
