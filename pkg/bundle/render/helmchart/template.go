package helmchart

import (
	"fmt"
	"maps"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// Limits of one execution.
type Limits struct {
	// Bytes that the templates may give together.
	Bytes int
	// SkipSchemaValidation ignores values.schema.json.
	SkipSchemaValidation bool
}

// Cluster is the cluster that templates are executed for.
type Cluster struct {
	Capabilities *chartutil.Capabilities
	// Lookup answers lookup; nil finds nothing.
	Lookup engine.ClientProvider
	// Asked, unless it is nil, learns what was asked about Capabilities.
	Asked *Asked
}

// Output is what templates give: streams in which every document says its file in a comment.
type Output struct {
	// Manifests in the order of installation.
	Manifests []byte
	// Hooks of all events, by weight.
	Hooks []byte
}

// Template executes a chart's templates. Like Helm it changes the chart: dependencies that are switched off
// leave it.
func Template(from *chart.Chart, values map[string]any, options chartutil.ReleaseOptions,
	cluster Cluster, limits Limits) (*Output, error) {
	if err := cluster.suits(from.Metadata); err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependenciesWithMerge(from, values); err != nil {
		return nil, fmt.Errorf("process dependencies of chart %s: %w", from.Name(), err)
	}
	known, err := chartutil.ToRenderValuesWithSchemaValidation(from, values, options, cluster.Capabilities, limits.SkipSchemaValidation)
	if err != nil {
		return nil, err
	}
	files, err := cluster.execute(from, known)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "NOTES.txt") })
	return sorted(files, limits.Bytes)
}

// suits returns an error when a chart is not made for the cluster's version.
func (c Cluster) suits(chart *chart.Metadata) error {
	if chart.KubeVersion == "" {
		return nil
	}
	if c.Asked != nil {
		c.Asked.Version = true
	}
	if version := c.Capabilities.KubeVersion.Version; !chartutil.IsCompatibleRange(chart.KubeVersion, version) {
		return fmt.Errorf("chart %s wants Kubernetes %s, this is %s", chart.Name, chart.KubeVersion, version)
	}
	return nil
}

func (c Cluster) execute(from *chart.Chart, known chartutil.Values) (map[string]string, error) {
	if c.Asked != nil {
		known["Capabilities"] = &witness{capabilities: c.Capabilities, asked: c.Asked}
	}
	if c.Lookup != nil {
		return engine.RenderWithClientProvider(from, known, c.Lookup)
	}
	return engine.Render(from, known)
}

func sorted(files map[string]string, limit int) (*Output, error) {
	total := 0
	for _, text := range files {
		if total += len(text); total > limit {
			return nil, fmt.Errorf("the templates render to more than %d MiB", limit>>20)
		}
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	output := &Output{}
	for _, document := range manifests {
		output.Manifests = fmt.Appendf(output.Manifests, "---\n# Source: %s\n%s\n", document.Name, document.Content)
	}
	for _, hook := range hooks {
		output.Hooks = fmt.Appendf(output.Hooks, "---\n# Source: %s\n%s\n", hook.Path, hook.Manifest)
	}
	return output, nil
}
