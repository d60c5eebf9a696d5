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
	capabilities *chartutil.Capabilities, limits Limits) (*Output, error) {
	version := capabilities.KubeVersion.Version
	if wanted := from.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, version) {
		return nil, fmt.Errorf("chart %s wants Kubernetes %s, this is %s", from.Name(), wanted, version)
	}
	if err := chartutil.ProcessDependenciesWithMerge(from, values); err != nil {
		return nil, fmt.Errorf("process dependencies of chart %s: %w", from.Name(), err)
	}
	known, err := chartutil.ToRenderValuesWithSchemaValidation(from, values, options, capabilities, limits.SkipSchemaValidation)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(from, known)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "NOTES.txt") })
	return sorted(files, limits.Bytes)
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
