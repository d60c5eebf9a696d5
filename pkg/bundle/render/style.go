package render

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/kustomize"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/manifest"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/overlay"
)

// Style is how a bundle's files become objects.
type Style string

// The styles.
const (
	Helm             Style = "Helm"
	Kustomize        Style = "Kustomize"
	HelmAndKustomize Style = "Helm+Kustomize"
	Raw              Style = "Raw"
)

const (
	chartFile      = "Chart.yaml"
	templateFolder = "templates/"
)

// chartFolder returns the folder of a bundle that holds a downloaded chart, so that several targets may
// use different ones. The name is upstream's.
func chartFolder(helm fleet.HelmOptions) string {
	return fmt.Sprintf(".chart/%x", sha256.Sum256([]byte(helm.Chart+":"+helm.Repo+":"+helm.Version)))
}

// plan says what to do with which files.
type plan struct {
	style Style
	tree  map[string][]byte
	// chartDir and kustomizeDir are folders of the tree, "." for its root; they mean something in the
	// styles that have them.
	chartDir     string
	kustomizeDir string
}

func planFor(tree map[string][]byte, options fleet.BundleDeploymentOptions) (*plan, error) {
	chartDir, isChart, err := findChart(tree, options.Helm)
	if err != nil {
		return nil, err
	}
	kustomizeDir, isKustomize, err := findKustomization(tree, options.Kustomize)
	if err != nil {
		return nil, err
	}
	result := &plan{tree: tree, chartDir: chartDir, kustomizeDir: kustomizeDir}
	switch {
	case isChart && isKustomize:
		result.style = HelmAndKustomize
	case isChart:
		result.style = Helm
	case isKustomize:
		result.style = Kustomize
	default:
		result.style = Raw
		result.tree, err = rawTree(tree, options.YAML)
	}
	return result, err
}

// findChart returns the folder with the chart: the path or the download that helm.chart names, else the root.
func findChart(tree map[string][]byte, helm *fleet.HelmOptions) (string, bool, error) {
	if helm == nil || helm.Chart == "" && helm.Repo == "" {
		return ".", tree[chartFile] != nil, nil
	}
	if helm.Repo == "" {
		dir := strings.TrimPrefix(path.Clean("/"+helm.Chart), "/")
		if dir == "" {
			dir = "."
		}
		if tree[path.Join(dir, chartFile)] != nil {
			return dir, true, nil
		}
	}
	folder := chartFolder(*helm)
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		relative, ok := strings.CutPrefix(name, folder+"/")
		if ok && path.Base(relative) == chartFile && strings.Count(relative, "/") <= 1 {
			return path.Dir(name), true, nil
		}
	}
	if tree[chartFile] != nil {
		return ".", true, nil
	}
	return "", false, fmt.Errorf("helm.chart %q: the bundle holds no such chart", helm.Chart)
}

// findKustomization returns the folder to build.
func findKustomization(tree map[string][]byte, options *fleet.KustomizeOptions) (string, bool, error) {
	if options == nil || options.Dir == "" {
		return ".", kustomize.File(tree, ".") != "", nil
	}
	dir := path.Clean(strings.TrimPrefix(options.Dir, "/"))
	if dir == ".." || strings.HasPrefix(dir, "../") {
		return "", false, fmt.Errorf("kustomize.dir %q leaves the bundle", options.Dir)
	}
	if kustomize.File(tree, dir) == "" {
		return "", false, fmt.Errorf("kustomize.dir %q: there is no kustomization.yaml in it", options.Dir)
	}
	return dir, true, nil
}

// rawTree returns the files of a bundle of plain manifests: overlays applied, the folders of other bundles
// and of charts left out.
func rawTree(tree map[string][]byte, options *fleet.YAMLOptions) (map[string][]byte, error) {
	var overlays []string
	if options != nil {
		overlays = options.Overlays
	}
	tree, err := overlay.Apply(tree, overlays)
	if err != nil {
		return nil, err
	}
	foreign := map[string]bool{}
	for name := range tree {
		if dir := path.Dir(name); dir != "." && startsBundle(path.Base(name)) {
			foreign[dir] = true
		}
	}
	result := make(map[string][]byte, len(tree))
	for name, data := range tree {
		if !isBelow(name, foreign) && !strings.HasPrefix(name, "../") && !isFleetYAML(name) {
			result[name] = data
		}
	}
	return result, nil
}

func startsBundle(base string) bool { return isFleetYAML(base) || base == chartFile }

func isFleetYAML(name string) bool { return name == "fleet.yaml" || name == "fleet.yml" }

func isBelow(name string, folders map[string]bool) bool {
	for dir := path.Dir(name); dir != "." && dir != ".."; dir = path.Dir(dir) {
		if folders[dir] {
			return true
		}
	}
	return false
}

// objects returns the plain manifests, which are not templates.
func (p *plan) objects() ([]manifest.Object, error) {
	if p.style != Raw {
		return nil, nil
	}
	var objects []manifest.Object
	for _, name := range slices.Sorted(maps.Keys(p.tree)) {
		if strings.HasPrefix(name, templateFolder) || !manifest.IsFile(name) {
			continue
		}
		found, err := manifest.Parse(name, p.tree[name])
		isBuild := kustomize.File(p.tree, path.Dir(name)) == name
		if err == nil && isBuild && slices.ContainsFunc(found, isKustomization) {
			err = fmt.Errorf("%s: a kustomization is no object of a cluster", name)
		}
		switch {
		case err != nil && isBuild:
			return nil, fmt.Errorf("%w; to build this folder with Kustomize, name it in kustomize.dir", err)
		case errors.Is(err, manifest.ErrNoObject):
			return nil, fmt.Errorf("%w; a file that holds none can be left out with .fleetignore", err)
		case err != nil:
			return nil, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

func isKustomization(object manifest.Object) bool {
	return object.GroupVersionKind().Group == "kustomize.config.k8s.io"
}

// cleanName returns a file's name as a relative slash path.
func cleanName(name string) (string, error) {
	clean := path.Clean(name)
	if name == "" || clean == "." || path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return "", errors.New("the bundle holds a file without a usable name")
	}
	return clean, nil
}
