package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path"
	"regexp"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/archive"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fleetyaml"
	"github.com/fairlead-dev/fairlead/pkg/bundle/layout"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// chartDir holds the charts that come from elsewhere.
const chartDir = ".chart"

// remoteChart finds charts that are named by where they are published: URLs, also git's, and hosts that
// need no scheme.
var remoteChart = regexp.MustCompile(`://|::|^git@|^(github\.com|gitlab\.com|bitbucket\.org)/`)

// ChartFolder returns the folder in a bundle for the chart that the options name, or "" if they name
// none. The digest is upstream's.
func ChartFolder(helm *fleet.HelmOptions) string {
	if helm == nil || (helm.Chart == "" && helm.Repo == "") {
		return ""
	}
	digest := sha256.Sum256([]byte(helm.Chart + ":" + helm.Repo + ":" + helm.Version))
	return path.Join(chartDir, hex.EncodeToString(digest[:]))
}

// chartOptions returns the different charts of the bundle and its customizations; a customization that leaves
// a part out has the bundle's.
func (b *builder) chartOptions() []*fleet.HelmOptions {
	var out []*fleet.HelmOptions
	seen := map[string]bool{"": true}
	add := func(helm *fleet.HelmOptions) {
		if folder := ChartFolder(helm); !seen[folder] {
			seen[folder] = true
			out = append(out, helm)
		}
	}
	add(b.spec.Helm)
	for _, target := range b.customizations() {
		if target.Helm == nil || target.DoNotDeploy {
			continue
		}
		effective := &fleet.HelmOptions{Chart: target.Helm.Chart, Repo: target.Helm.Repo, Version: target.Helm.Version}
		if root := b.spec.Helm; root != nil {
			effective.Chart = orElse(effective.Chart, root.Chart)
			effective.Repo = orElse(effective.Repo, root.Repo)
			effective.Version = orElse(effective.Version, root.Version)
		}
		add(effective)
	}
	return out
}

func orElse(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// addCharts brings charts along that are not among the bundle's own files, and the dependencies of all
// charts that may be deployed.
func (b *builder) addCharts(ctx context.Context) error {
	roots := []string{}
	if b.files.Has("Chart.yaml") {
		roots = append(roots, ".")
	}
	for _, helm := range b.chartOptions() {
		root, err := b.addChart(ctx, helm)
		if err != nil {
			return err
		}
		if root != "" {
			roots = append(roots, root)
		}
	}
	if b.spec.Helm != nil && b.spec.Helm.DisableDependencyUpdate {
		return nil
	}
	for _, root := range roots {
		if err := b.addDependencies(ctx, root, 0); err != nil {
			return err
		}
	}
	return nil
}

// addChart returns the folder of the chart in the bundle.
func (b *builder) addChart(ctx context.Context, helm *fleet.HelmOptions) (string, error) {
	if helm.Repo == "" {
		local, done, err := b.localChart(helm)
		if err != nil || done {
			return local, err
		}
		if !remoteChart.MatchString(helm.Chart) {
			return "", fault.New(fault.Stalled, ReasonChart, "%s: helm.chart %s is no folder in the repository, and helm.repo is not set", b.specFile, helm.Chart)
		}
	}
	chart, err := b.fetch(ctx, ChartRef{Repo: helm.Repo, Chart: helm.Chart, Version: helm.Version, Path: b.Dir})
	if err != nil {
		return "", err
	}
	return b.unpackChart(ChartFolder(helm), chart.Archive)
}

// localChart handles a chart given by its path. One that is not among the bundle's files (above the
// folder, or in a bundle of its own) is copied.
func (b *builder) localChart(helm *fleet.HelmOptions) (string, bool, error) {
	name := path.Clean(helm.Chart)
	if b.files.Has(path.Join(name, "Chart.yaml")) {
		return name, true, nil
	}
	full, err := tree.Clean(path.Join(b.Dir, name))
	if err != nil || path.IsAbs(name) {
		return "", false, fault.New(fault.Stalled, ReasonChart, "%s: helm.chart %s lies outside the repository", b.specFile, helm.Chart)
	}
	switch {
	case b.tree.IsDir(full) && b.tree.IsFile(path.Join(full, "Chart.yaml")):
		root := path.Join(ChartFolder(helm), path.Base(full))
		return root, true, b.copyFolder(full, root)
	case b.tree.IsFile(full):
		data, err := b.tree.ReadFile(full)
		if err != nil {
			return "", false, err
		}
		root, err := b.unpackChart(ChartFolder(helm), data)
		return root, true, err
	case b.tree.IsDir(full):
		return "", false, fault.New(fault.Stalled, ReasonChart, "%s: helm.chart %s holds no Chart.yaml", b.specFile, helm.Chart)
	}
	return "", false, nil
}

func (b *builder) fetch(ctx context.Context, ref ChartRef) (*Chart, error) {
	if b.charts == nil {
		return nil, fault.New(fault.Stalled, ReasonChart, "chart %s from %s is not in the repository, and charts cannot be fetched here", ref.Chart, ref.Repo)
	}
	return b.charts.Fetch(ctx, ref)
}

// unpackChart puts the files of an archive into a folder and returns the chart's folder in it.
func (b *builder) unpackChart(folder string, data []byte) (string, error) {
	files, err := archive.Unpack(data, archive.DefaultLimits)
	if err != nil {
		return "", err
	}
	root := ""
	for _, file := range files {
		// Upstream leaves out hidden files of charts too, and they would change the deployment id.
		if strings.HasPrefix(file.Name, ".") || strings.Contains(file.Name, "/.") {
			continue
		}
		name := path.Join(folder, file.Name)
		if path.Base(name) == "Chart.yaml" && (root == "" || len(path.Dir(name)) < len(root)) {
			root = path.Dir(name)
		}
		if err := b.files.Put(name, file.Data); err != nil {
			return "", err
		}
	}
	if root == "" {
		return "", fault.New(fault.Stalled, ReasonChart, "the archive for %s holds no Chart.yaml", b.specFile)
	}
	return root, nil
}

// copyFolder puts all files of a folder of the repository, but hidden ones, under another name.
func (b *builder) copyFolder(from, to string) error {
	return b.tree.Walk(from, &copier{b, to})
}

type copier struct {
	*builder
	to string
}

// Enter reads every folder.
func (c *copier) Enter(tree.Folder) (bool, error) { return true, nil }

// Wants leaves out hidden entries, and the file of options of a chart that is a bundle too.
func (c *copier) Wants(_ tree.Folder, name string, _ bool) bool {
	return !layout.IsHidden(path.Base(name)) && name != fleetyaml.Names[0] && name != fleetyaml.Names[1]
}

// File adds a file under its new name.
func (c *copier) File(name string, data []byte) error {
	return c.files.Put(path.Join(c.to, name), data)
}

// Large adds a file that is not held under its new name.
func (c *copier) Large(name string, size int64, content io.Reader) error {
	return c.files.PutLarge(path.Join(c.to, name), size, content)
}
