package helmchart

import (
	"encoding/json"

	"helm.sh/helm/v3/pkg/chartutil"
)

// Asked is what templates asked about the cluster while they were executed: the output may be another on a
// cluster that answers differently.
type Asked struct {
	// Version of Kubernetes, asked for by a template or restricted by the chart.
	Version bool
	// Kinds that the cluster serves.
	Kinds bool
}

// witness stands for Helm's Capabilities in templates and notes what they look at. Its methods have the names
// of the fields.
type witness struct {
	capabilities *chartutil.Capabilities
	asked        *Asked
}

// KubeVersion returns a pointer, as templates take methods of the version from.
func (w *witness) KubeVersion() *chartutil.KubeVersion {
	w.asked.Version = true
	return &w.capabilities.KubeVersion
}

// APIVersions notes that the kinds of the cluster were asked for.
func (w *witness) APIVersions() chartutil.VersionSet {
	w.asked.Kinds = true
	return w.capabilities.APIVersions
}

// HelmVersion is Helm's own; it is the same everywhere.
func (w *witness) HelmVersion() any { return w.capabilities.HelmVersion }

// MarshalJSON shows all there is to see.
func (w *witness) MarshalJSON() ([]byte, error) {
	w.asked.Version, w.asked.Kinds = true, true
	return json.Marshal(w.capabilities)
}
