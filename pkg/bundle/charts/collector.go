package charts

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
	"github.com/fairlead-dev/fairlead/pkg/bundle/resources"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ReasonUnavailable is the reason of errors about charts that are not where they should be or do not parse.
const ReasonUnavailable = "ChartUnavailable"

// chartDir holds the charts that come from elsewhere.
const chartDir = ".chart"

// remoteChart finds charts that are named by where they are published: URLs, also git's, and hosts that
// need no scheme.
var remoteChart = regexp.MustCompile(`://|::|^git@|^(github\.com|gitlab\.com|bitbucket\.org)/`)

// Folder returns the folder in a bundle for the chart that the options name, or "" if they name
// none. The digest is upstream's.
func Folder(helm *fleet.HelmOptions) string {
	if helm == nil || (helm.Chart == "" && helm.Repo == "") {
		return ""
	}
	digest := sha256.Sum256([]byte(helm.Chart + ":" + helm.Repo + ":" + helm.Version))
	return path.Join(chartDir, hex.EncodeToString(digest[:]))
}

// Collector adds the charts of one bundle to its files.
type Collector struct {
	Tree *tree.Tree
	// Source has the charts that are not in the tree; nil when there is none.
	Source Source
	// Files are the bundle's own at first.
	Files *resources.Set
	// Dir is the bundle's folder, and SpecFile its fleet.yaml, for messages, or "".
	Dir, SpecFile string
}

// Add brings charts along that are not among the bundle's own files, and the dependencies of all
// charts that may be deployed: by the options of the bundle, nil when it has none, and of its customizations.
func (c *Collector) Add(ctx context.Context, options *fleet.HelmOptions, customizations []*fleet.BundleTarget) error {
	roots := []string{}
	if c.Files.Has("Chart.yaml") {
		roots = append(roots, ".")
	}
	for _, helm := range chartOptions(options, customizations) {
		root, err := c.addChart(ctx, helm)
		if err != nil {
			return err
		}
		if root != "" {
			roots = append(roots, root)
		}
	}
	if options != nil && options.DisableDependencyUpdate {
		return nil
	}
	for _, root := range roots {
		if err := c.addDependencies(ctx, root, 0); err != nil {
			return err
		}
	}
	return nil
}

// chartOptions returns the different charts of the bundle and its customizations; a customization that leaves
// a part out has the bundle's.
func chartOptions(root *fleet.HelmOptions, customizations []*fleet.BundleTarget) []*fleet.HelmOptions {
	var out []*fleet.HelmOptions
	seen := map[string]bool{"": true}
	add := func(helm *fleet.HelmOptions) {
		if folder := Folder(helm); !seen[folder] {
			seen[folder] = true
			out = append(out, helm)
		}
	}
	add(root)
	for _, target := range customizations {
		if target.Helm == nil || target.DoNotDeploy {
			continue
		}
		effective := &fleet.HelmOptions{Chart: target.Helm.Chart, Repo: target.Helm.Repo, Version: target.Helm.Version}
		if root != nil {
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

// addChart returns the folder of the chart in the bundle.
func (c *Collector) addChart(ctx context.Context, helm *fleet.HelmOptions) (string, error) {
	if helm.Repo == "" {
		local, done, err := c.localChart(helm)
		if err != nil || done {
			return local, err
		}
		if !remoteChart.MatchString(helm.Chart) {
			return "", fault.New(fault.Stalled, ReasonUnavailable, "%s: helm.chart %s is no folder in the repository, and helm.repo is not set", c.SpecFile, helm.Chart)
		}
	}
	chart, err := c.fetch(ctx, Ref{Repo: helm.Repo, Chart: helm.Chart, Version: helm.Version, Path: c.Dir})
	if err != nil {
		return "", err
	}
	return c.unpackChart(Folder(helm), chart.Archive)
}

// localChart handles a chart given by its path. One that is not among the bundle's files (above the
// folder, or in a bundle of its own) is copied.
func (c *Collector) localChart(helm *fleet.HelmOptions) (string, bool, error) {
	name := path.Clean(helm.Chart)
	if c.Files.Has(path.Join(name, "Chart.yaml")) {
		return name, true, nil
	}
	full, err := tree.Clean(path.Join(c.Dir, name))
	if err != nil || path.IsAbs(name) {
		return "", false, fault.New(fault.Stalled, ReasonUnavailable, "%s: helm.chart %s lies outside the repository", c.SpecFile, helm.Chart)
	}
	switch {
	case c.Tree.IsDir(full) && c.Tree.IsFile(path.Join(full, "Chart.yaml")):
		root := path.Join(Folder(helm), path.Base(full))
		return root, true, c.copyFolder(full, root)
	case c.Tree.IsFile(full):
		data, err := c.Tree.ReadFile(full)
		if err != nil {
			return "", false, err
		}
		root, err := c.unpackChart(Folder(helm), data)
		return root, true, err
	case c.Tree.IsDir(full):
		return "", false, fault.New(fault.Stalled, ReasonUnavailable, "%s: helm.chart %s holds no Chart.yaml", c.SpecFile, helm.Chart)
	}
	return "", false, nil
}

func (c *Collector) fetch(ctx context.Context, ref Ref) (*Chart, error) {
	if c.Source == nil {
		return nil, fault.New(fault.Stalled, ReasonUnavailable, "chart %s from %s is not in the repository, and charts cannot be fetched here", ref.Chart, ref.Repo)
	}
	return c.Source.Fetch(ctx, ref)
}

// unpackChart puts the files of an archive into a folder and returns the chart's folder in it.
func (c *Collector) unpackChart(folder string, data []byte) (string, error) {
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
		if err := c.Files.Put(name, file.Data); err != nil {
			return "", err
		}
	}
	if root == "" {
		return "", fault.New(fault.Stalled, ReasonUnavailable, "the archive for %s holds no Chart.yaml", c.SpecFile)
	}
	return root, nil
}

// copyFolder puts all files of a folder of the repository, but hidden ones, under another name.
func (c *Collector) copyFolder(from, to string) error {
	return c.Tree.Walk(from, &copier{c.Files, to})
}

type copier struct {
	files *resources.Set
	to    string
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
