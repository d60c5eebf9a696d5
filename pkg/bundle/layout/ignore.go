package layout

import (
	"path"
	"strings"
)

// ignoreFile lists what a folder and those below it leave out.
const ignoreFile = ".fleetignore"

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
