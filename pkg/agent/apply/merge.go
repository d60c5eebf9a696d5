package apply

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/client-go/dynamic"
)

// merge writes an object that cannot be applied: it is created, or gets the patch that leads from what
// was applied before to what is desired and leaves the rest of the live object alone. Lists are
// replaced whole, which is what makes duplicate keys pass.
func merge(ctx context.Context, resource dynamic.ResourceInterface, desired, live, previous *unstructured.Unstructured, cause error) (Result, error) {
	result := Result{Merged: true, Note: "merged instead of applied: " + cause.Error()}
	var err error
	if live == nil {
		result.Action = Created
		result.Object, err = resource.Create(ctx, desired, metav1.CreateOptions{FieldManager: FieldManager})
		return result, err
	}
	patch, err := threeWayPatch(previous, desired, live)
	if err != nil {
		return result, err
	}
	if string(patch) == "{}" {
		result.Action, result.Object = Unchanged, live
		return result, nil
	}
	result.Action = Updated
	result.Object, err = resource.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	return result, err
}

func threeWayPatch(previous, desired, live *unstructured.Unstructured) ([]byte, error) {
	if previous == nil {
		previous = desired
	}
	documents := make([][]byte, 3)
	for i, object := range []*unstructured.Unstructured{previous, desired, live} {
		data, err := json.Marshal(object.Object)
		if err != nil {
			return nil, err
		}
		documents[i] = data
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(documents[0], documents[1], documents[2])
}
