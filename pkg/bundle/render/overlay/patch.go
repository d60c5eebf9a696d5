package overlay

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/fairlead-dev/fairlead/pkg/bundle/render/builtin"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/manifest"
)

// patchFile returns the file with every document of the patch applied.
func patchFile(name string, base, patch []byte) ([]byte, error) {
	objects, err := manifest.Parse(name, base)
	if err != nil {
		return nil, err
	}
	for i := range objects {
		// Written into the file, a name would be taken for the name of another.
		objects[i].Origin = manifest.Origin{}
	}
	for _, document := range manifest.Split(patch) {
		values, err := manifest.Decode(document)
		if err != nil {
			return nil, fmt.Errorf("document %d (line %d): %w", document.Number, document.Line, err)
		}
		for _, value := range values {
			if err := patchObjects(name, objects, value); err != nil {
				return nil, fmt.Errorf("document %d (line %d): %w", document.Number, document.Line, err)
			}
		}
	}
	return manifest.Encode(objects)
}

func patchObjects(name string, objects []manifest.Object, patch any) error {
	if patch == nil {
		return nil
	}
	index, err := choose(name, objects, patch)
	if err != nil {
		return err
	}
	original, err := json.Marshal(objects[index].Object)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	change, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("read patch: %w", err)
	}
	patched, err := apply(objects[index].Unstructured, original, change, patch)
	if err != nil {
		return fmt.Errorf("patch %s of %s: %w", manifest.Name(objects[index]), name, err)
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(patched, &fields); err != nil || fields == nil {
		return fmt.Errorf("patch %s of %s: the result is no object", manifest.Name(objects[index]), name)
	}
	objects[index].Object = fields
	return nil
}

// choose returns which object of the file a patch is for: the only one, or the one it names.
func choose(name string, objects []manifest.Object, patch any) (int, error) {
	if len(objects) == 0 {
		return 0, fmt.Errorf("%s holds no object to patch", name)
	}
	if len(objects) == 1 {
		return 0, nil
	}
	fields, ok := patch.(map[string]any)
	if !ok {
		return 0, fmt.Errorf("%s holds %d objects; a JSON patch needs a file with one", name, len(objects))
	}
	wanted := unstructured.Unstructured{Object: fields}
	found := -1
	for i, object := range objects {
		if !isNamed(object.Unstructured, wanted) {
			continue
		}
		if found >= 0 {
			return 0, fmt.Errorf("the patch fits several objects of %s; name kind, namespace and name in it", name)
		}
		found = i
	}
	if found < 0 {
		return 0, fmt.Errorf("%s has no %s to patch", name, manifest.Name(manifest.Object{Unstructured: &wanted}))
	}
	return found, nil
}

// isNamed says whether an object has everything that the patch says about its identity.
func isNamed(object *unstructured.Unstructured, patch unstructured.Unstructured) bool {
	same := func(have, want string) bool { return want == "" || have == want }
	return same(object.GetAPIVersion(), patch.GetAPIVersion()) &&
		same(object.GetKind(), patch.GetKind()) &&
		same(object.GetNamespace(), patch.GetNamespace()) &&
		same(object.GetName(), patch.GetName())
}

func apply(object *unstructured.Unstructured, original, change []byte, patch any) (patched []byte, err error) {
	// The patching libraries index into foreign input; a panic of theirs is a patch that does not fit.
	defer func() {
		if recover() != nil {
			patched, err = nil, errors.New("the patch does not fit the object")
		}
	}()
	switch patch.(type) {
	case []any:
		return applyJSONPatch(original, change)
	case map[string]any:
	default:
		return nil, errors.New("a patch is an object or a list of operations")
	}
	typed, ok := builtin.Type(object.GroupVersionKind())
	if !ok {
		return jsonpatch.MergePatch(original, change)
	}
	return strategicpatch.StrategicMergePatch(original, change, typed)
}

func applyJSONPatch(original, change []byte) ([]byte, error) {
	operations, err := jsonpatch.DecodePatch(change)
	if err != nil {
		return nil, fmt.Errorf("read operations: %w", err)
	}
	return operations.ApplyWithOptions(original, boundedPatch())
}

// boundedPatch keeps a patch of few bytes from growing an object without end by copying.
func boundedPatch() *jsonpatch.ApplyOptions {
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = 16 << 20
	return options
}
