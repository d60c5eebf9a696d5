package layout

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fleetyaml"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ReasonInvalidPath is the reason of errors about paths that name no file or lead out of the repository.
const ReasonInvalidPath = "InvalidPath"

// Candidate is a folder that should be a bundle.
type Candidate struct {
	// Dir is relative to the root of the tree.
	Dir string
	// Options is the file that takes the place of fleet.yaml, relative to Dir, or "".
	Options string
	// Siblings are all files of options that are used with Dir.
	Siblings []string
	// From are the requested paths that led here.
	From []string
}

// Search returns the folders below paths, which may be patterns, that are bundles by their content.
func Search(files *tree.Tree, paths []string) ([]Candidate, error) {
	var out []Candidate
	seen := map[string]int{}
	for _, entry := range paths {
		dirs, err := files.Dirs(entry)
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			found, err := search(files, dir)
			if err != nil {
				return nil, err
			}
			for _, one := range found {
				// Two paths may lead to one folder: it is one bundle.
				if at, twice := seen[one]; twice {
					out[at].From = append(out[at].From, entry)
					continue
				}
				seen[one] = len(out)
				out = append(out, Candidate{Dir: one, From: []string{entry}})
			}
		}
	}
	return out, nil
}

// Listed returns the folders of a driven scan, whether they are there or not.
func Listed(entries []fleet.BundlePath) ([]Candidate, error) {
	var out []Candidate
	siblings := map[string][]string{}
	for _, entry := range entries {
		base, err := tree.Clean(strings.TrimLeft(entry.Base, "/"))
		if err != nil {
			return nil, err
		}
		options := entry.Options
		if options != "" {
			options = path.Clean(options)
			if _, err := tree.Clean(path.Join(base, options)); err != nil || path.IsAbs(options) {
				return nil, fault.New(fault.Stalled, ReasonInvalidPath, "options %s of %s lie outside the repository", entry.Options, base)
			}
			siblings[base] = append(siblings[base], options)
		}
		out = append(out, Candidate{Dir: base, Options: options, From: []string{entry.Base}})
	}
	for i := range out {
		out[i].Siblings = siblings[out[i].Dir]
	}
	return out, nil
}

// search returns the bundles below a folder: itself, when it has fleet.yaml or there is YAML that belongs
// to no other bundle, and every folder with fleet.yaml.
func search(files *tree.Tree, start string) ([]string, error) {
	s := &scan{tree: files}
	if err := s.folder(start, true, false); err != nil {
		return nil, err
	}
	if s.yaml && !slices.Contains(s.found, start) {
		s.found = append(s.found, start)
	}
	slices.Sort(s.found)
	return s.found, nil
}

type scan struct {
	tree  *tree.Tree
	found []string
	// yaml: the start has YAML files of its own.
	yaml bool
}

// folder looks at one folder; own says that its files belong to the start's bundle, hidden that a bundle
// would not read them.
func (s *scan) folder(dir string, own, hidden bool) error {
	entries, err := s.tree.ReadDir(dir)
	if err != nil {
		return err
	}
	if hasSpec(entries) {
		s.found = append(s.found, dir)
		own = false
	}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() && name != ".git" {
			if err := s.folder(path.Join(dir, name), own, hidden || IsHidden(name)); err != nil {
				return err
			}
		}
		if own && !hidden && !entry.IsDir() && !IsHidden(name) && isYAML(name) {
			s.yaml = true
		}
	}
	return nil
}

func hasSpec(entries []fs.DirEntry) bool {
	return slices.ContainsFunc(entries, func(entry fs.DirEntry) bool {
		return !entry.IsDir() && slices.Contains(fleetyaml.Names, entry.Name())
	})
}

// IsHidden says that a bundle leaves files and folders of this name out.
func IsHidden(name string) bool {
	return strings.HasPrefix(name, ".") && name != "."
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}
