package render

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/helmchart"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/manifest"
)

// chart returns the chart of the release: the bundle's own, or a generated one that holds nothing but
// the templates and the files they may read. Plain manifests and Kustomize folders are left out of it,
// since Helm keeps the chart in every revision it stores.
func (p *plan) chart(in Input) (*chart.Chart, error) {
	files := []*loader.BufferedFile{}
	switch p.style {
	case Helm, HelmAndKustomize:
		files = p.chartFiles()
	case Raw:
		files = append(p.templateFiles(), generatedChart(in))
	case Kustomize:
		files = append(files, generatedChart(in))
	}
	loaded, err := helmchart.Load(files)
	if err != nil {
		return nil, fmt.Errorf("load chart %s: %w", p.chartDir, err)
	}
	return loaded, nil
}

func (p *plan) chartFiles() []*loader.BufferedFile {
	var files []*loader.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(p.tree)) {
		relative := name
		if p.chartDir != "." {
			var ok bool
			if relative, ok = strings.CutPrefix(name, p.chartDir+"/"); !ok {
				continue
			}
		}
		if p.chartDir == "." && isForeign(relative) {
			continue
		}
		files = append(files, &loader.BufferedFile{Name: relative, Data: p.tree[name]})
	}
	return files
}

// isForeign says whether a file at the root is none of the chart's: another chart, or a copy for Kustomize.
func isForeign(name string) bool {
	return strings.HasPrefix(name, "../") || strings.HasPrefix(name, ".chart/") || strings.HasPrefix(name, ".kustomize/")
}

// templateFiles returns the templates among plain manifests with the files that are no manifests.
func (p *plan) templateFiles() []*loader.BufferedFile {
	var files, others []*loader.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(p.tree)) {
		file := &loader.BufferedFile{Name: name, Data: p.tree[name]}
		switch {
		case strings.HasPrefix(name, templateFolder):
			files = append(files, file)
		case !manifest.IsFile(name) && !strings.HasPrefix(name, "charts/"):
			others = append(others, file)
		}
	}
	if len(files) == 0 {
		return nil
	}
	return append(files, others...)
}

// notInVersions are the characters that semantic versioning keeps out of build metadata.
var notInVersions = regexp.MustCompile(`[^0-9A-Za-z-]`)

// generatedChart returns the Chart.yaml of a bundle without one; name and version are upstream's.
func generatedChart(in Input) *loader.BufferedFile {
	build := in.ManifestID
	if in.Commit != "" {
		build = "git-" + in.Commit[:min(len(in.Commit), 12)]
	}
	version := "v0.0.0"
	if build != "" {
		version += "+" + notInVersions.ReplaceAllString(build, "-")
	}
	data := fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n",
		strconv.Quote(path.Base(in.BundleID)), strconv.Quote(version))
	return &loader.BufferedFile{Name: chartFile, Data: []byte(data)}
}

// annotate leaves in the chart's metadata what uninstalling and collecting need to know.
func annotate(chart *chart.Chart, in Input, marks Marks) {
	annotations := maps.Clone(chart.Metadata.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[fleet.ReleaseBundleIDAnnotation] = in.BundleID
	annotations[fleet.ReleaseCommitAnnotation] = in.Commit
	annotations[fleet.ReleaseAgentNamespaceAnnotation] = marks.AgentNamespace
	annotations[fleet.ReleaseServiceAccountAnnotation] = in.Options.ServiceAccount
	annotations[fleet.ReleaseKeepResourcesAnnotation] = strconv.FormatBool(in.Options.KeepResources)
	chart.Metadata.Annotations = annotations
}
