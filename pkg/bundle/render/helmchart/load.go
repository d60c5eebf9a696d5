package helmchart

import (
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// Load returns the chart that the files make, names relative to its folder.
func Load(files []*loader.BufferedFile) (*chart.Chart, error) {
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	sortDependencies(loaded)
	localSchemas(loaded)
	return loaded, nil
}

// sortDependencies undoes the loader's order, which is that of a map.
func sortDependencies(parent *chart.Chart) {
	dependencies := slices.Clone(parent.Dependencies())
	slices.SortStableFunc(dependencies, func(a, b *chart.Chart) int {
		return strings.Compare(a.Name()+"\x00"+a.Metadata.Version, b.Name()+"\x00"+b.Metadata.Version)
	})
	for _, dependency := range dependencies {
		sortDependencies(dependency)
	}
	parent.SetDependencies(dependencies...)
}
