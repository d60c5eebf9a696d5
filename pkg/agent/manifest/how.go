package manifest

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// How returns how an object of a release is written, and the object as it is sent: without the note.
func How(object *unstructured.Unstructured) (fleet.ApplyOptions, *unstructured.Unstructured, error) {
	var how fleet.ApplyOptions
	note, found := object.GetAnnotations()[fleet.ApplyAnnotation]
	if !found {
		return how, object, nil
	}
	if err := json.Unmarshal([]byte(note), &how); err != nil {
		return how, object, fmt.Errorf("read annotation %s: %w", fleet.ApplyAnnotation, err)
	}
	sent := object.DeepCopy()
	annotations := sent.GetAnnotations()
	delete(annotations, fleet.ApplyAnnotation)
	sent.SetAnnotations(annotations)
	return how, sent, nil
}

// StrategyOf returns the strategy by which an object is written.
func StrategyOf(object *unstructured.Unstructured) fleet.ApplyStrategy {
	how, _, err := How(object)
	if err != nil || how.Strategy == "" {
		return fleet.ApplyHelm
	}
	return how.Strategy
}

// IsReadOnly tells objects that a release looks at and never writes or deletes.
func IsReadOnly(object *unstructured.Unstructured) bool {
	return StrategyOf(object) == fleet.ApplyReadOnly
}

// Claims tells objects that are the release's once it has written them. One that is only looked at, or left as
// it was found, is not.
func Claims(object *unstructured.Unstructured) bool {
	strategy := StrategyOf(object)
	return strategy != fleet.ApplyReadOnly && strategy != fleet.ApplyCreateOnly
}
