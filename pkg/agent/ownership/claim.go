package ownership

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Reasons of a refusal.
const (
	// ReasonOwnedByOther means that the object belongs to another bundle or Helm release.
	ReasonOwnedByOther = "OwnedByOther"
	// ReasonNotOwned means that the object exists and belongs to nobody.
	ReasonNotOwned = "NotOwned"
)

// Claim is in whose name objects are written.
type Claim struct {
	// SetID and SetHash are the bundle's marks (names.ObjectSet, names.ObjectSetHash).
	SetID, SetHash string
	// Release and ReleaseNamespace name the bundle's Helm release.
	Release, ReleaseNamespace string
	// TakeOwnership adopts objects without an owner.
	TakeOwnership bool
	// Recorded are objects that an earlier revision of the release holds: they are the bundle's even if
	// somebody has taken the marks off.
	Recorded map[manifest.Key]bool
	// Yields says whether another set lets go of an object because it no longer renders it or is being
	// removed. Nil means that none does.
	Yields func(setHash string, key manifest.Key) bool
	// Abandoned says whether a bundle's release does not exist any more, so that what it left is nobody's. Nil
	// means that none is known to be.
	Abandoned func(namespace, release string) bool
}

// Owns says whether a live object carries the claim's mark.
func (c Claim) Owns(live *unstructured.Unstructured) bool {
	return live.GetLabels()[fleet.SetHashLabel] == c.SetHash
}

// Mark puts the claim's marks on an object.
func (c Claim) Mark(object *unstructured.Unstructured) {
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[fleet.SetHashLabel] = c.SetHash
	annotations[fleet.SetIDAnnotation] = c.SetID
	object.SetLabels(labels)
	object.SetAnnotations(annotations)
}

// Check returns nil when the claim may write the live object, else an error that names the owner.
func (c Claim) Check(live *unstructured.Unstructured) error {
	if hash := live.GetLabels()[fleet.SetHashLabel]; hash != "" {
		return c.checkMarked(hash, live)
	}
	key, annotations := manifest.KeyOf(live), live.GetAnnotations()
	release, namespace := annotations[manifest.ReleaseNameAnnotation], annotations[manifest.ReleaseNamespaceAnnotation]
	switch {
	case release != "" && (release != c.Release || namespace != c.ReleaseNamespace):
		return fault.New(fault.Stalled, ReasonOwnedByOther, "%s belongs to Helm release %s/%s", key, namespace, release)
	case release != "", annotations[fleet.SetIDAnnotation] == c.SetID, c.Recorded[key], c.TakeOwnership:
		return nil
	}
	return fault.New(fault.Stalled, ReasonNotOwned,
		"%s exists and belongs to nobody; set helm.takeOwnership to adopt it", key)
}

// checkMarked is Check for an object with a set's label.
func (c Claim) checkMarked(hash string, live *unstructured.Unstructured) error {
	key, annotations := manifest.KeyOf(live), live.GetAnnotations()
	release, namespace := annotations[manifest.ReleaseNameAnnotation], annotations[manifest.ReleaseNamespaceAnnotation]
	switch {
	case hash == c.SetHash, c.Yields != nil && c.Yields(hash, key):
		return nil
	case annotations[fleet.SetIDAnnotation] == c.SetID && release == c.Release && namespace == c.ReleaseNamespace:
		return nil // somebody has changed the label alone; an owner would have changed the rest too
	case !c.isAbandoned(namespace, release):
		return fault.New(fault.Stalled, ReasonOwnedByOther, "%s belongs to %s", key, setOwner(live))
	case c.TakeOwnership:
		return nil
	}
	return fault.New(fault.Stalled, ReasonNotOwned, "%s was left by %s, which is gone; set helm.takeOwnership to adopt it", key, setOwner(live))
}

func (c Claim) isAbandoned(namespace, release string) bool {
	return release != "" && c.Abandoned != nil && c.Abandoned(namespace, release)
}

// CheckHook returns nil when a hook of the claim's release may replace the live object. Hooks carry no
// marks; another owner's object is refused.
func (c Claim) CheckHook(live *unstructured.Unstructured) error {
	unmarked := c
	unmarked.TakeOwnership = true
	return unmarked.Check(live)
}

// Owner names the owner of an object: a bundle's set, a Helm release, or "" for none.
func Owner(live *unstructured.Unstructured) string {
	if live.GetLabels()[fleet.SetHashLabel] != "" {
		return setOwner(live)
	}
	annotations := live.GetAnnotations()
	if release := annotations[manifest.ReleaseNameAnnotation]; release != "" {
		return "Helm release " + annotations[manifest.ReleaseNamespaceAnnotation] + "/" + release
	}
	return ""
}

func setOwner(live *unstructured.Unstructured) string {
	annotations := live.GetAnnotations()
	release := annotations[manifest.ReleaseNamespaceAnnotation] + "/" + annotations[manifest.ReleaseNameAnnotation]
	if release == "/" {
		release = "unknown"
	}
	set := annotations[fleet.SetIDAnnotation]
	if set == "" {
		set = live.GetLabels()[fleet.SetHashLabel]
	}
	return "bundle set " + set + " (release " + release + ")"
}
