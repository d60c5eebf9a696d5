package lint

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/bundle"
)

// Severity of a finding.
type Severity string

// The severities; only errors make the command fail.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	// File is relative to the folder; Line and Column start at 1, 0 is unknown.
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Severity Severity `json:"severity"`
	// Rule is one of the words of Rules.
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// Rules and what they look for.
var Rules = map[string]string{
	"fleet-yaml":           "fleet.yaml holds keys that are unknown, not used, or probably not meant",
	"bundle":               "a folder cannot be made into a bundle",
	"path":                 "a path of the GitRepo gives no bundle",
	"hashed-name":          "the name of a bundle gets a digest, because the folder's name cannot be one",
	"unused-values-file":   "a file that looks like Helm values is not used as values",
	"unused-customization": "a target customization applies to no cluster",
	"no-cluster":           "a bundle reaches no cluster",
	"dependency-cycle":     "bundles wait for each other",
	"template":             "values do not render for a cluster",
	"retyped":              "a template's text is read as a number or a boolean",
	"render":               "a bundle does not render for a cluster",
}

// position is how errors name a place, and syntaxError how YAML's do.
var (
	position    = regexp.MustCompile(`^([^\s:]+):(\d+):(\d+): `)
	syntaxError = regexp.MustCompile(`^read ([^\s:]+): yaml: line (\d+)(): `)
	onlyFile    = regexp.MustCompile(`^(?:read values file: )?([^\s:]+(?:\.ya?ml|Kustomization))(?::| refers to| does not parse)`)
)

// at moves a place that the message starts with into the finding.
func (f Finding) at() Finding {
	for _, pattern := range []*regexp.Regexp{position, syntaxError} {
		found := pattern.FindStringSubmatch(f.Message)
		if found == nil {
			continue
		}
		f.File = found[1]
		// The expressions match digits only; a column that is left out is the first.
		f.Line, _ = strconv.Atoi(found[2])
		f.Column, _ = strconv.Atoi(found[3])
		f.Column = max(f.Column, 1)
		f.Message = f.Message[len(found[0]):]
		return f
	}
	if found := onlyFile.FindStringSubmatch(f.Message); found != nil {
		f.File = found[1]
	}
	return f
}

// inBundle are how errors of rendering name a place in a file of the bundle, and a template of a chart.
var inBundle = []*regexp.Regexp{
	regexp.MustCompile(`^render bundle \S+: (.+?), document \d+ \(line \d+\): not YAML: line (\d+)`),
	regexp.MustCompile(`^render bundle \S+: (.+?), document \d+ \(line (\d+)\)`),
	regexp.MustCompile(`^render bundle \S+: .*?[ (][^\s/]+/((?:charts/[^\s:]+/)?templates/[^\s:]+):(\d+)`),
	regexp.MustCompile(`^render bundle \S+: .*?[ (][^\s/]+/((?:charts/[^\s:]+/)?templates/[^\s:]+)()`),
	regexp.MustCompile(`^render bundle \S+: ([^\s:]+\.ya?ml)()[:,]`),
}

// within moves the place of a rendering error into the finding, when the bundle has the file. A template is
// named from its chart, which may lie in a folder of the bundle.
func (f Finding) within(made bundle.Bundle) Finding {
	for _, pattern := range inBundle {
		found := pattern.FindStringSubmatch(f.Message)
		if found == nil {
			continue
		}
		name, ok := shipped(made, found[1])
		if !ok {
			continue
		}
		f.File = path.Join(made.Dir, name)
		if original, copied := strings.CutPrefix(name, ".kustomize/"); copied {
			f.File = original
		}
		// The expressions match digits or nothing, which is 0.
		if f.Line, _ = strconv.Atoi(found[2]); f.Line > 0 {
			f.Column = 1
		}
		return f
	}
	return f
}

// shipped returns the file of the bundle that has the name, or, below a folder, is the only one that ends in it.
// Charts that were fetched have no place in the repository.
func shipped(made bundle.Bundle, name string) (string, bool) {
	var ends []string
	for _, resource := range made.Object.Spec.Resources {
		switch {
		case resource.Name == name:
			return name, true
		case strings.HasPrefix(resource.Name, ".chart/"):
		case strings.HasSuffix(resource.Name, "/"+name):
			ends = append(ends, resource.Name)
		}
	}
	if len(ends) != 1 {
		return "", false
	}
	return ends[0], true
}

func (f Finding) place() string {
	if f.Line == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
}

// sorted returns the findings by place, each once.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(findings)
}
