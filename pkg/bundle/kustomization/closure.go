package kustomization

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const (
	// ReasonRemote is the reason of the error for a base that is fetched from somewhere else.
	ReasonRemote = "RemoteBase"
	// ReasonInvalid is the reason of the other errors of this package.
	ReasonInvalid = "InvalidKustomization"

	// HelmOutput is the name under which a rendered chart joins the build; it is no file.
	HelmOutput = "fleet-manifests.yaml"
)

// Names are the spellings of a kustomization file, in the order Kustomize looks for them.
var Names = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// Files reads a repository; names are relative to its root.
type Files interface {
	IsDir(name string) bool
	IsFile(name string) bool
	ReadFile(name string) ([]byte, error)
}

// Find returns the path of the kustomization file in a folder, or "".
func Find(files Files, dir string) string {
	for _, name := range Names {
		if full := path.Join(dir, name); files.IsFile(full) {
			return full
		}
	}
	return ""
}

// Closures finds what builds read. It remembers what it found, since many builds share a base: make one for
// every read of a repository.
type Closures struct {
	files Files
	found map[string][]string
}

// NewClosures returns Closures of a repository that does not change.
func NewClosures(files Files) *Closures {
	return &Closures{files: files, found: map[string][]string{}}
}

// Of returns the path of every file a build of dir reads, sorted. Errors are of class Stalled and
// name the kustomization file and the reference.
func (c *Closures) Of(dir string) ([]string, error) {
	return (&closure{Closures: c, open: map[string]bool{}}).folder(path.Clean(dir), "")
}

// closure is one walk.
type closure struct {
	*Closures
	// open are the folders on the way to the one that is being read.
	open map[string]bool
}

func (c *closure) folder(dir, from string) ([]string, error) {
	if c.open[dir] {
		return nil, invalid(from, "refers to %s, which refers back to it", dir)
	}
	if known, ok := c.found[dir]; ok {
		return known, nil
	}
	c.open[dir] = true
	defer delete(c.open, dir)
	file := Find(c.files, dir)
	if file == "" {
		return nil, invalid(from, "%s holds no kustomization.yaml", dir)
	}
	data, err := c.files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var build types.Kustomization
	if err := yaml.Unmarshal(data, &build); err != nil {
		return nil, invalid(file, "does not parse: %v", err)
	}
	found := []string{file}
	for _, reference := range references(&build) {
		more, err := c.follow(dir, file, reference)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	slices.Sort(found)
	found = slices.Compact(found)
	c.found[dir] = found
	return found, nil
}

// reference is a path in a kustomization file and what it may be.
type reference struct {
	path string
	// dir: may name a folder; inline: may be YAML instead of a path.
	dir, inline bool
}

func references(build *types.Kustomization) []reference {
	var out []reference
	add := func(dir, inline bool, paths ...string) {
		for _, p := range paths {
			if p != "" {
				out = append(out, reference{path: p, dir: dir, inline: inline})
			}
		}
	}
	add(true, false, build.Resources...)
	add(true, false, build.Bases...) //nolint:staticcheck // deprecated, and in many trees
	add(true, false, build.Components...)
	add(true, true, build.Generators...)
	add(true, true, build.Transformers...)
	add(true, true, build.Validators...)
	add(false, false, build.Crds...)
	add(false, false, build.Configurations...)
	add(false, false, build.OpenAPI["path"])
	for _, patch := range build.PatchesStrategicMerge { //nolint:staticcheck // deprecated, and in many trees
		add(false, true, string(patch))
	}
	for _, patch := range slices.Concat(build.Patches, build.PatchesJson6902) { //nolint:staticcheck // deprecated, and in many trees
		add(false, false, patch.Path)
	}
	for _, replacement := range build.Replacements {
		add(false, false, replacement.Path)
	}
	for _, generator := range build.ConfigMapGenerator {
		add(false, false, sources(generator.KvPairSources)...)
	}
	for _, generator := range build.SecretGenerator {
		add(false, false, sources(generator.KvPairSources)...)
	}
	return out
}

func sources(pairs types.KvPairSources) []string {
	paths := slices.Concat(pairs.EnvSources, []string{pairs.EnvSource})
	for _, file := range pairs.FileSources {
		if _, after, named := strings.Cut(file, "="); named {
			file = after
		}
		paths = append(paths, file)
	}
	return paths
}

// follow returns the files that a reference stands for.
func (c *closure) follow(dir, from string, ref reference) ([]string, error) {
	if ref.inline && strings.ContainsAny(ref.path, "\n{") {
		return nil, nil
	}
	if path.IsAbs(ref.path) {
		return nil, outside(from, ref.path)
	}
	full := path.Join(dir, ref.path)
	leaves := full == ".." || strings.HasPrefix(full, "../")
	switch {
	case remote(ref.path) && (leaves || !c.files.IsFile(full) && !c.files.IsDir(full)):
		return nil, fault.New(fault.Stalled, ReasonRemote, "%s refers to %s; bases are read from the repository only, so copy it in or use a submodule", from, redact(ref.path))
	case leaves:
		return nil, outside(from, ref.path)
	case c.files.IsFile(full):
		return []string{full}, nil
	case ref.dir && c.files.IsDir(full):
		return c.folder(full, from)
	case path.Base(full) == HelmOutput:
		return nil, nil
	}
	return nil, invalid(from, "refers to %s, which does not exist", ref.path)
}

// host finds bases that Kustomize would clone although they look like paths.
var host = regexp.MustCompile(`^(github\.com|gitlab\.com|bitbucket\.org|[\w.-]+\.[a-z]+/[^/]+/[^/]+//)`)

// credentials is the part of a URL that must not be shown.
var credentials = regexp.MustCompile(`//[^/@]*@`)

func remote(reference string) bool {
	return strings.Contains(reference, "://") || strings.HasPrefix(reference, "git@") ||
		strings.HasPrefix(reference, "git::") || strings.Contains(reference, "?ref=") || host.MatchString(reference)
}

func redact(reference string) string {
	return credentials.ReplaceAllString(reference, "//")
}

func outside(from, reference string) error {
	return fault.New(fault.Stalled, ReasonInvalid, "%s refers to %s, which lies outside the repository", from, reference)
}

func invalid(file, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	if file != "" {
		message = file + " " + message
	}
	return fault.New(fault.Stalled, ReasonInvalid, "%s", message)
}
