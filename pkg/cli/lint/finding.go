package lint

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
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
	"template":             "values do not render for a cluster",
	"retyped":              "a template's text is read as a number or a boolean",
	"render":               "a bundle does not render for a cluster",
}

// position is how errors name a place, and syntaxError how YAML's do.
var (
	position    = regexp.MustCompile(`^([^\s:]+):(\d+):(\d+): `)
	syntaxError = regexp.MustCompile(`^read ([^\s:]+): yaml: line (\d+)(): `)
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
	}
	return f
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
