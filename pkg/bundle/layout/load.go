package layout

import (
	"io"
	"path"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/bundle/fleetyaml"
	"github.com/fairlead-dev/fairlead/pkg/bundle/resources"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
)

// Load puts the files of the bundle's folder into a set. Values files, by name relative to the folder, are left
// out. What it warns of counts also with an error.
func (c Candidate) Load(files *tree.Tree, valuesFiles map[string]bool, into *resources.Set) ([]fleetyaml.Warning, error) {
	l := &loader{tree: files, files: into, siblings: c.Siblings, valuesFiles: valuesFiles}
	err := files.Walk(c.Dir, l)
	return l.warnings, err
}

// loader is the visitor that decides what belongs to a bundle.
type loader struct {
	tree        *tree.Tree
	files       *resources.Set
	siblings    []string
	valuesFiles map[string]bool
	warnings    []fleetyaml.Warning
	// rules of the folders on the way down, outermost first.
	rules []ignoreRules
}

// Enter leaves folders out that are bundles of their own, and reads .fleetignore.
func (l *loader) Enter(folder tree.Folder) (bool, error) {
	if folder.Name != "." && l.isNested(folder) {
		return false, nil
	}
	for len(l.rules) > 0 && !within(folder.Name, l.rules[len(l.rules)-1].dir) {
		l.rules = l.rules[:len(l.rules)-1]
	}
	if !folder.Has(ignoreFile) {
		return true, nil
	}
	full := path.Join(folder.Path, ignoreFile)
	data, err := l.tree.ReadFile(full)
	if err != nil {
		return false, err
	}
	rules := parseIgnore(folder.Name, data, func(line int, message string) {
		l.warnings = append(l.warnings, fleetyaml.Warning{File: full, Line: line, Column: 1, Message: message})
	})
	l.rules = append(l.rules, rules)
	return true, nil
}

// isNested says that a folder has a fleet.yaml that is not one of this bundle's files of options.
func (l *loader) isNested(folder tree.Folder) bool {
	return slices.ContainsFunc(fleetyaml.Names, func(name string) bool {
		return folder.Has(name) && !slices.Contains(l.siblings, path.Join(folder.Name, name))
	})
}

// Wants leaves out hidden and ignored entries, and files that were read as options or values.
func (l *loader) Wants(folder tree.Folder, name string, dir bool) bool {
	if IsHidden(path.Base(name)) {
		return false
	}
	if !dir && (slices.Contains(fleetyaml.Names, name) || slices.Contains(l.siblings, name) || l.valuesFiles[name]) {
		return false
	}
	return !slices.ContainsFunc(l.rules, func(rules ignoreRules) bool {
		return within(folder.Name, rules.dir) && rules.match(name, dir)
	})
}

// File adds a file to the bundle.
func (l *loader) File(name string, data []byte) error {
	return l.files.Put(name, data)
}

// Large adds a file that is not held.
func (l *loader) Large(name string, size int64, content io.Reader) error {
	return l.files.PutLarge(name, size, content)
}

// within says that name is dir or below it.
func within(name, dir string) bool {
	return dir == "." || name == dir || strings.HasPrefix(name, dir+"/")
}
