package charts

import "context"

// Source finds charts that are not in the tree.
type Source interface {
	// Fetch returns the chart's archive. Errors carry a class of package fault.
	Fetch(ctx context.Context, ref Ref) (*Chart, error)
}

// Ref names a chart as fleet.yaml or a Chart.yaml does.
type Ref struct {
	// Repo is the URL of a Helm repository or OCI registry; empty when Chart is a URL.
	Repo string
	// Chart is a name in Repo or a URL.
	Chart string
	// Version is a version or a semver constraint; empty means the newest.
	Version string
	// Path is the folder of the bundle that asks; credentials may depend on it.
	Path string
}

// Chart is a fetched chart.
type Chart struct {
	// Name and Version as they were resolved.
	Name, Version string
	// Archive is the gzipped tar.
	Archive []byte
}
