package diff

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// MaxPatch bounds a patch that is reported, in bytes. A longer one is cut down to the names of the
// fields that differ.
const MaxPatch = 2048

// State says how a live object relates to what was applied.
type State string

// The states.
const (
	InSync   State = "InSync"
	Modified State = "Modified"
	// Missing means that the object is gone.
	Missing State = "Missing"
	// Foreign means that the object is there and belongs to somebody else.
	Foreign State = "Foreign"
	// Unknown means that the comparison failed; Reason says why.
	Unknown State = "Unknown"
)

// Verdict is the outcome of one comparison.
type Verdict struct {
	State State
	// Patch is the JSON merge patch that would restore a Modified object.
	Patch string
	// Reason of an Unknown verdict, or the owner of a Foreign object.
	Reason string
	// Exception is the entry for diff.comparePatches that would except what differs in a Modified object.
	Exception *fleet.ComparePatch
}

// serverFields of metadata say nothing about what was applied.
var serverFields = []string{
	"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink",
	"deletionTimestamp", "deletionGracePeriodSeconds",
}

// Comparable returns a copy of the object without what only the API server and controllers write:
// status, and the server's part of metadata.
func Comparable(object *unstructured.Unstructured) *unstructured.Unstructured {
	content := make(map[string]any, len(object.Object))
	for field, value := range object.Object {
		if field != "status" {
			content[field] = value
		}
	}
	copied := (&unstructured.Unstructured{Object: content}).DeepCopy()
	for _, field := range serverFields {
		unstructured.RemoveNestedField(copied.Object, "metadata", field)
	}
	for _, holder := range manifest.AuthorityHolders(copied) {
		delete(holder, "caBundle")
	}
	return copied
}

// Digest returns a short value that is equal for objects with equal comparable forms.
func Digest(object *unstructured.Unstructured) (string, error) {
	data, err := json.Marshal(Comparable(object).Object)
	if err != nil {
		return "", fmt.Errorf("digest %s: %w", manifest.KeyOf(object), err)
	}
	sum := sha256.Sum256(data)
	return string(sum[:]), nil
}

// Compare returns the verdict on a live object, given what it would be if it were applied again.
func Compare(live, restored *unstructured.Unstructured, rules Rules) Verdict {
	from, to := rules.Normalize(Comparable(live)), rules.Normalize(Comparable(restored))
	patch, err := mergePatch(from, to)
	if err != nil {
		return Verdict{State: Unknown, Reason: err.Error()}
	}
	if len(patch) == 0 {
		return Verdict{State: InSync}
	}
	return Verdict{State: Modified, Patch: readable(patch, live.GroupVersionKind().GroupKind()), Exception: exception(from, to)}
}

func mergePatch(from, to *unstructured.Unstructured) (map[string]any, error) {
	before, err := json.Marshal(from.Object)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(to.Object)
	if err != nil {
		return nil, err
	}
	data, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil {
		return nil, err
	}
	var patch map[string]any
	return patch, json.Unmarshal(data, &patch)
}

// readable writes a patch for people: short, and without secrets.
func readable(patch map[string]any, kind schema.GroupKind) string {
	if kind == (schema.GroupKind{Kind: "Secret"}) {
		for _, field := range []string{"data", "stringData"} {
			if values, found := patch[field].(map[string]any); found {
				patch[field] = hideLeaves(values, "(hidden)")
			}
		}
	}
	text, err := json.Marshal(patch)
	if err == nil && len(text) > MaxPatch {
		text, err = json.Marshal(hideLeaves(patch, "…"))
	}
	if err != nil {
		return "{}"
	}
	if len(text) > MaxPatch {
		// Very many fields: their names alone are too long.
		return strings.ToValidUTF8(string(text[:MaxPatch]), "") + "…"
	}
	return string(text)
}

func hideLeaves(values map[string]any, with string) map[string]any {
	hidden := make(map[string]any, len(values))
	for field, value := range values {
		switch inner := value.(type) {
		case map[string]any:
			hidden[field] = hideLeaves(inner, with)
		case nil:
			hidden[field] = nil
		default:
			hidden[field] = with
		}
	}
	return hidden
}

// Status returns the entry of a BundleDeployment's status for an object that is not in sync, and
// whether there is one: an Unknown object is not known to be modified.
func (v Verdict) Status(object *unstructured.Unstructured) (fleet.ModifiedStatus, bool) {
	status := fleet.ModifiedStatus{
		Kind:       object.GetKind(),
		APIVersion: object.GetAPIVersion(),
		Namespace:  object.GetNamespace(),
		Name:       object.GetName(),
	}
	switch v.State {
	case Missing:
		status.Create = true
	case Foreign:
		status.Create, status.Exist = true, true
	case Modified:
		status.Patch = v.Patch
	default:
		return status, false
	}
	return status, true
}

// Offer returns the entry for diff.comparePatches by which the bundle would not mind the verdict on an
// object; nil when there is none.
func (v Verdict) Offer(object *unstructured.Unstructured) *fleet.ComparePatch {
	switch v.State {
	case Modified:
		return v.Exception
	case Missing:
		return absence(object)
	}
	return nil
}
