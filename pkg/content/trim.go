package content

import (
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Annotations of a trimmed Bundle. They exist in caches only: no API server takes such keys, so that nobody can
// pass a Bundle off as trimmed.
const (
	trimmedManifest = "cached: manifest-id"
	trimmedDigest   = "cached: manifest-digest"
	trimmedSpec     = "cached: spec-digest"
)

// Summary stands for the files of a Bundle that is kept without them.
type Summary struct {
	// ManifestID names the Content that holds the files, and Digest is the digest it is made from.
	ManifestID string
	Digest     string
	// SpecDigest changes with any part of the spec, files included.
	SpecDigest string
}

// Summarize digests a whole Bundle's spec. Of files that are elsewhere no more is known than their id.
func Summarize(spec fleet.BundleSpec) (Summary, error) {
	stored := Stored{ID: spec.ContentsID}
	if spec.ContentsID == "" {
		var err error
		if stored, err = (Manifest{Resources: spec.Resources}).Store(); err != nil {
			return Summary{}, err
		}
	}
	return summarize(spec, stored)
}

// With returns the summary of a spec that has the same files and may lack them here.
func (s Summary) With(spec fleet.BundleSpec) (Summary, error) {
	return summarize(spec, Stored{ID: s.ManifestID, Digest: s.Digest})
}

func summarize(spec fleet.BundleSpec, stored Stored) (Summary, error) {
	// What the API server fills in must not look like a change.
	if spec.TargetCustomizationMode == "" {
		spec.TargetCustomizationMode = fleet.FirstMatch
	}
	spec.Resources = nil
	data, err := line(spec)
	if err != nil {
		return Summary{}, fmt.Errorf("encode bundle spec: %w", err)
	}
	return Summary{ManifestID: stored.ID, Digest: stored.Digest, SpecDigest: sum(append(data, stored.Digest...))}, nil
}

// Trim replaces the files of a Bundle by their Summary, so that a cache can hold thousands. A trimmed
// Bundle must not be sent back to an API server as a whole; use patches. What is trimmed stays as it is: informers
// transform what a watch begins with twice.
func Trim(bundle *fleet.Bundle) error {
	if _, trimmed := SummaryOf(bundle); trimmed {
		return nil
	}
	summary, err := Summarize(bundle.Spec)
	if err != nil {
		return err
	}
	bundle.Spec.Resources = nil
	bundle.ManagedFields = nil
	annotations := make(map[string]string, len(bundle.Annotations)+3)
	for key, value := range bundle.Annotations {
		annotations[key] = value
	}
	annotations[trimmedManifest] = summary.ManifestID
	annotations[trimmedDigest] = summary.Digest
	annotations[trimmedSpec] = summary.SpecDigest
	bundle.Annotations = annotations
	return nil
}

// SummaryOf returns what Trim kept; ok is false for a Bundle that was not trimmed.
func SummaryOf(bundle *fleet.Bundle) (summary Summary, ok bool) {
	id, ok := bundle.Annotations[trimmedManifest]
	return Summary{
		ManifestID: id,
		Digest:     bundle.Annotations[trimmedDigest],
		SpecDigest: bundle.Annotations[trimmedSpec],
	}, ok
}
