package apply

import (
	"context"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/fairlead-dev/fairlead/pkg/agent/concede"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
)

// Knowledge returns what is known of a desired object's live one without asking the API server, nil when that
// is nothing. It may be out of date: a write based on it names the version that was known, and is refused
// when that is not the present one. Then the API server is asked. It is called from several goroutines.
type Knowledge func(desired *unstructured.Unstructured) (live *unstructured.Unstructured)

func (k Knowledge) of(object *unstructured.Unstructured) *unstructured.Unstructured {
	if k == nil {
		return nil
	}
	return k(object)
}

// noVersion is the version of no object: stores count from one, and use up the first before any object. An apply that
// names it creates the object, or is refused where there is one.
const noVersion = "1"

// applyKnown applies without a look at the live object, where what is known of it will do: it is the
// claim's and was applied before, or nothing says that it exists. When done is false the object has to be
// looked at.
func (w *Writer) applyKnown(ctx context.Context, resource dynamic.ResourceInterface, how plan, desired *unstructured.Unstructured, options Options) (result Result, done bool) {
	if manifest.Expires(desired) || !how.isPlain() {
		return Result{}, false // what is there decides what may be written
	}
	version := noVersion
	known := options.Known.of(desired)
	switch {
	case known != nil:
		if known.GetDeletionTimestamp() != nil || !options.Claim.Owns(known) || !w.memory.Applied(options.Claim.SetHash, desired) {
			return Result{}, false
		}
		if w.unchanged(desired, known, options) {
			return Result{Object: known, Action: Unchanged}, true
		}
		version = known.GetResourceVersion()
	case options.Previous != nil || options.Claim.Recorded[manifest.KeyOf(desired)]:
		return Result{}, false // it should be there, so that something has happened to it
	}
	adapted, err := concede.Replicas(ctx, w.agent, how.desired, known)
	if err != nil {
		return Result{}, false
	}
	applied, err := serverSideApply(ctx, resource, at(adapted, version), how.forces(), false)
	if err != nil {
		return Result{}, false
	}
	return Result{Object: applied, Action: actionOf(known, applied)}, true
}

// at returns the object with the version that it must have for a write to be carried out.
func at(object *unstructured.Unstructured, version string) *unstructured.Unstructured {
	content := maps.Clone(object.Object)
	metadata := map[string]any{}
	if present, ok := content["metadata"].(map[string]any); ok {
		maps.Copy(metadata, present)
	}
	metadata["resourceVersion"] = version
	content["metadata"] = metadata
	return &unstructured.Unstructured{Object: content}
}

// removeKnown deletes an object that is known to be the claim's. When done is false it has to be looked at.
func removeKnown(ctx context.Context, resource dynamic.ResourceInterface, known *unstructured.Unstructured, claim ownership.Claim, policy metav1.DeletionPropagation) (done bool) {
	if known == nil || known.GetDeletionTimestamp() != nil || !claim.Owns(known) {
		return false
	}
	uid, version := known.GetUID(), known.GetResourceVersion()
	err := resource.Delete(ctx, known.GetName(), metav1.DeleteOptions{
		PropagationPolicy: &policy,
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	return err == nil
}
