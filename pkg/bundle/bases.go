package bundle

import (
	"path"
	"slices"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fleetyaml"
	"github.com/fairlead-dev/fairlead/pkg/bundle/kustomization"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// baseDir holds the files of Kustomize builds that reach out of the bundle's folder.
const baseDir = ".kustomize"

// addBases looks at every Kustomize build of the bundle; those that need files the bundle does not have
// are moved, with all their files, below .kustomize.
func (b *builder) addBases() error {
	if b.spec.Kustomize == nil && b.customizedKustomize() == 0 && !b.hasKustomization() {
		return nil
	}
	own := map[string]bool{}
	for _, file := range b.files.Files() {
		own[path.Join(b.Dir, file.Name)] = true
	}
	shipped := map[string]bool{}
	if b.spec.Kustomize != nil || b.hasKustomization() {
		dir, err := b.base(kustomizeDir(b.spec.Kustomize), own, shipped)
		if err != nil {
			return err
		}
		if dir != "" {
			b.spec.Kustomize = &fleet.KustomizeOptions{Dir: dir}
		}
	}
	for _, target := range b.customizations() {
		if kustomizeDir(target.Kustomize) == "" || target.DoNotDeploy {
			continue
		}
		dir, err := b.base(target.Kustomize.Dir, own, shipped)
		if err != nil {
			return err
		}
		if dir != "" {
			target.Kustomize.Dir = dir
		}
	}
	if len(shipped) == 0 {
		return nil
	}
	return b.files.Put(path.Join(baseDir, fleetyaml.Names[0]), nil)
}

func kustomizeDir(options *fleet.KustomizeOptions) string {
	if options == nil {
		return ""
	}
	return options.Dir
}

func (b *builder) customizedKustomize() int {
	n := 0
	for _, target := range b.customizations() {
		if kustomizeDir(target.Kustomize) != "" {
			n++
		}
	}
	return n
}

func (b *builder) hasKustomization() bool {
	return slices.ContainsFunc(kustomization.Names, b.files.Has)
}

// base returns the folder to build instead of dir, or "" when the bundle has all that is needed.
func (b *builder) base(dir string, own, shipped map[string]bool) (string, error) {
	if dir == "" && !b.hasKustomization() {
		return "", nil
	}
	full, err := tree.Clean(path.Join(b.Dir, dir))
	if err != nil || path.IsAbs(dir) {
		return "", fault.New(fault.Stalled, kustomization.ReasonInvalid, "%s: kustomize.dir %s lies outside the repository", b.specFile, dir)
	}
	if !b.tree.IsDir(full) || kustomization.Find(b.tree, full) == "" {
		return "", fault.New(fault.Stalled, kustomization.ReasonInvalid, "%s: kustomize.dir %s holds no kustomization.yaml", b.specFile, dir)
	}
	needed, err := b.closures.Of(full)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(needed, func(name string) bool { return !own[name] }) {
		return "", nil
	}
	for _, name := range needed {
		if shipped[name] {
			continue
		}
		shipped[name] = true
		data, err := b.baseFile(name)
		if err != nil {
			return "", err
		}
		if err := b.files.Put(path.Join(baseDir, name), data); err != nil {
			return "", err
		}
	}
	return path.Join(baseDir, full), nil
}

// Bounds of the files of shared bases that are kept between bundles, in bytes: of one, and of all.
const (
	maxKeptFile  = 64 << 10
	maxKeptFiles = 4 << 20
)

// baseFile reads a file of a base, which is probably the next bundle's too.
func (r *reader) baseFile(name string) ([]byte, error) {
	if kept, ok := r.kept[name]; ok {
		return kept, nil
	}
	data, err := r.tree.ReadFile(name)
	if err == nil && len(data) <= maxKeptFile && r.keptSize+len(data) <= maxKeptFiles {
		r.kept[name] = data
		r.keptSize += len(data)
	}
	return data, err
}
