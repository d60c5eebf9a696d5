package bundle

import (
	"io"
	"path"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/bundle/fleetyaml"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
)

// ignoreFile lists what a folder and those below it leave out.
const ignoreFile = ".fleetignore"

// load reads the files of the bundle's folder.
func (b *builder) load() error {
	return b.tree.Walk(b.dir, &loader{builder: b})
}

// loader is the visitor that decides what belongs to a bundle.
type loader struct {
	*builder
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
		l.warnings = append(l.warnings, Warning{File: full, Line: line, Column: 1, Message: message})
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
	if isHidden(path.Base(name)) {
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

// ignoreRules are the lines of one .fleetignore.
type ignoreRules struct {
	dir      string
	patterns []ignorePattern
}

type ignorePattern struct {
	glob string
	// anchored patterns match the path from the file's folder, others the base name.
	anchored bool
	// onlyDirs patterns match folders.
	onlyDirs bool
}

// parseIgnore reads the lines of a .fleetignore; those it cannot honour are reported.
func parseIgnore(dir string, data []byte, report func(line int, message string)) ignoreRules {
	rules := ignoreRules{dir: dir}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "!") || strings.Contains(line, "**") {
			report(number, "negation and ** are not supported; the line is skipped")
			continue
		}
		glob := strings.TrimSuffix(strings.TrimSuffix(line, "/*"), "/")
		pattern := ignorePattern{
			glob:     strings.TrimPrefix(glob, "/"),
			anchored: strings.Contains(glob, "/"),
			onlyDirs: glob != line,
		}
		if _, err := path.Match(pattern.glob, ""); err != nil || pattern.glob == "" {
			report(number, "not a valid pattern; the line is skipped")
			continue
		}
		rules.patterns = append(rules.patterns, pattern)
	}
	return rules
}

func (r ignoreRules) match(name string, dir bool) bool {
	base, relative := path.Base(name), name
	if r.dir != "." {
		relative = strings.TrimPrefix(name, r.dir+"/")
	}
	for _, pattern := range r.patterns {
		subject := base
		if pattern.anchored {
			subject = relative
		}
		if matched, err := path.Match(pattern.glob, subject); err == nil && matched && (dir || !pattern.onlyDirs) {
			return true
		}
	}
	return false
}
