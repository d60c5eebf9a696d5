package charts

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/Masterminds/semver/v3"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// maxDependencyDepth bounds chains of file:// dependencies.
const maxDependencyDepth = 8

// chartMeta is what matters here of Chart.yaml, requirements.yaml and Chart.lock.
type chartMeta struct {
	Dependencies []dependency `json:"dependencies"`
}

type dependency struct {
	Name       string `json:"name"`
	Version    string `json:"version"`
	Repository string `json:"repository"`
}

// addDependencies brings along what a chart depends on and does not hold. A dependency without a repository
// must be there: Helm's library would deploy the chart without it and say nothing.
func (c *Collector) addDependencies(ctx context.Context, root string, depth int) error {
	if depth > maxDependencyDepth {
		return fault.New(fault.Stalled, ReasonUnavailable, "%s: the chart's dependencies go round in circles", path.Join(c.Dir, root))
	}
	meta, err := c.chartMeta(path.Join(root, "Chart.yaml"))
	if err != nil {
		return err
	}
	if len(meta.Dependencies) == 0 {
		// Charts of version v1 list them in a file of their own.
		if meta, err = c.chartMeta(path.Join(root, "requirements.yaml")); err != nil {
			return err
		}
	}
	lock, err := c.chartMeta(path.Join(root, "Chart.lock"))
	if err != nil {
		return err
	}
	for _, wanted := range meta.Dependencies {
		if c.holds(root, wanted) {
			continue
		}
		if wanted.Repository == "" {
			return missingDependency(path.Join(c.Dir, root), wanted)
		}
		wanted.Version = locked(wanted, lock.Dependencies)
		if err := c.addDependency(ctx, root, wanted, depth); err != nil {
			return fmt.Errorf("dependency %s of the chart in %s: %w", wanted.Name, path.Join(c.Dir, root), err)
		}
	}
	return nil
}

func (c *Collector) chartMeta(name string) (chartMeta, error) {
	var meta chartMeta
	data, found := c.Files.Find(name)
	if !found {
		return meta, nil
	}
	if err := yaml.Unmarshal(data, &meta); err != nil {
		return meta, fault.New(fault.Stalled, ReasonUnavailable, "%s does not parse: %w", path.Join(c.Dir, name), err)
	}
	return meta, nil
}

func missingDependency(chart string, wanted dependency) error {
	return fault.New(fault.Stalled, ReasonUnavailable, "the chart in %s depends on %s, which is not in its charts folder, and names no repository for it", chart, wanted.Name)
}

// holds says that the chart has the dependency in its charts folder, unpacked or as an archive. The folder
// may have another name than the chart in it.
func (c *Collector) holds(root string, wanted dependency) bool {
	unpacked := path.Join(root, "charts", wanted.Name) + "/"
	packed := path.Join(root, "charts", wanted.Name) + "-"
	for _, file := range c.Files.Files() {
		if strings.HasPrefix(file.Name, unpacked) {
			return true
		}
		if path.Base(file.Name) == "Chart.yaml" && path.Dir(path.Dir(file.Name)) == path.Join(root, "charts") && chartName(file.Data) == wanted.Name {
			return true
		}
		version, isArchive := strings.CutSuffix(strings.TrimPrefix(file.Name, packed), ".tgz")
		if isArchive && strings.HasPrefix(file.Name, packed) {
			if _, err := semver.NewVersion(version); err == nil {
				return true
			}
		}
	}
	return false
}

// chartName returns the name in a Chart.yaml, or "" where there is none to read.
func chartName(data []byte) string {
	var meta struct {
		Name string `json:"name"`
	}
	if err := yaml.Unmarshal(data, &meta); err != nil {
		return ""
	}
	return meta.Name
}

// locked returns the version that Chart.lock chose, when it still fits what Chart.yaml asks for.
func locked(wanted dependency, lock []dependency) string {
	constraint, err := semver.NewConstraint(wanted.Version)
	if err != nil {
		return wanted.Version
	}
	for _, entry := range lock {
		version, err := semver.NewVersion(entry.Version)
		if err == nil && entry.Name == wanted.Name && entry.Repository == wanted.Repository && constraint.Check(version) {
			return entry.Version
		}
	}
	return wanted.Version
}

func (c *Collector) addDependency(ctx context.Context, root string, wanted dependency, depth int) error {
	charts := path.Join(root, "charts")
	if local, isFile := strings.CutPrefix(wanted.Repository, "file://"); isFile {
		if strings.HasPrefix(root, chartDir+"/") {
			return fault.New(fault.Stalled, ReasonUnavailable, "%s lies beside the chart, and a fetched chart has nothing beside it", wanted.Repository)
		}
		full, err := tree.Clean(path.Join(c.Dir, root, local))
		if err != nil || path.IsAbs(local) {
			return fault.New(fault.Stalled, ReasonUnavailable, "%s lies outside the repository", wanted.Repository)
		}
		if !c.Tree.IsFile(path.Join(full, "Chart.yaml")) {
			return fault.New(fault.Stalled, ReasonUnavailable, "%s holds no Chart.yaml", full)
		}
		return c.addLocal(ctx, full, path.Join(charts, wanted.Name), depth)
	}
	if !strings.Contains(wanted.Repository, "://") {
		return fault.New(fault.Stalled, ReasonUnavailable, "the repository %q is no URL; names of repositories on somebody's machine mean nothing here", wanted.Repository)
	}
	chart, err := c.fetch(ctx, Ref{Repo: wanted.Repository, Chart: wanted.Name, Version: wanted.Version, Path: c.Dir})
	if err != nil {
		return err
	}
	return c.Files.Put(path.Join(charts, fmt.Sprintf("%s-%s.tgz", chart.Name, chart.Version)), chart.Archive)
}

// addLocal copies a chart from the repository into another one's charts, with its own dependencies.
func (c *Collector) addLocal(ctx context.Context, from, to string, depth int) error {
	if depth >= maxDependencyDepth {
		return fault.New(fault.Stalled, ReasonUnavailable, "%s: the chart's dependencies go round in circles", from)
	}
	if err := c.copyFolder(from, to); err != nil {
		return err
	}
	meta, err := c.chartMeta(path.Join(to, "Chart.yaml"))
	if err != nil {
		return err
	}
	for _, wanted := range meta.Dependencies {
		if c.holds(to, wanted) {
			continue
		}
		if wanted.Repository == "" {
			return missingDependency(from, wanted)
		}
		if local, isFile := strings.CutPrefix(wanted.Repository, "file://"); isFile {
			// Relative to where the chart is in the repository, not to its copy.
			full, err := tree.Clean(path.Join(from, local))
			if err != nil {
				return err
			}
			if err := c.addLocal(ctx, full, path.Join(to, "charts", wanted.Name), depth+1); err != nil {
				return err
			}
			continue
		}
		if err := c.addDependency(ctx, to, wanted, depth+1); err != nil {
			return err
		}
	}
	return nil
}
