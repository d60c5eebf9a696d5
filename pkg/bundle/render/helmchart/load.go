package helmchart

import (
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/fairlead-dev/fairlead/pkg/bundle/archive"
)

// Load returns the chart that the files make, names relative to its folder. Archives among them that unpack to
// too much are an error before they are.
func Load(files []*loader.BufferedFile) (*chart.Chart, error) {
	for _, file := range files {
		if !archive.IsNested(file.Name) {
			continue
		}
		if err := archive.Check(file.Data, archive.DefaultLimits); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name, err)
		}
	}
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
