package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func live(labels, annotations map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion("v1")
	o.SetKind("ConfigMap")
	o.SetName("x")
	o.SetNamespace("n")
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	return o
}

func TestThreeWayPatch(t *testing.T) {
	with := func(data map[string]any) *unstructured.Unstructured {
		o := live(nil, nil)
		o.Object["data"] = data
		return o
	}
	before, wanted := with(map[string]any{"old": "1", "kept": "1"}), with(map[string]any{"kept": "2"})
	found := with(map[string]any{"old": "1", "kept": "0", "theirs": "x"})
	patch, err := threeWayPatch(before, wanted, found)
	if err != nil || string(patch) != `{"data":{"kept":"2","old":null}}` {
		t.Errorf("patch %s, %v", patch, err)
	}
	if patch, err := threeWayPatch(nil, wanted, with(map[string]any{"kept": "2", "theirs": "x"})); err != nil || string(patch) != "{}" {
		t.Errorf("patch of nothing %s, %v", patch, err)
	}
}
