package lint

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/cli/report"
	"github.com/fairlead-dev/fairlead/pkg/version"
)

// formats write findings.
var formats = map[string]func(io.Writer, []Finding) error{
	"text": text, "json": asJSON, "github": github, "sarif": sarif,
}

func text(out io.Writer, findings []Finding) error {
	for _, f := range findings {
		if _, err := fmt.Fprintf(out, "%s: %s: %s (%s)\n", f.place(), f.Severity, f.Message, f.Rule); err != nil {
			return err
		}
	}
	return nil
}

func asJSON(out io.Writer, findings []Finding) error {
	if findings == nil {
		findings = []Finding{}
	}
	return encode(out, map[string]any{"apiVersion": report.Version, "kind": "Lint", "findings": findings})
}

func encode(out io.Writer, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("print findings: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s\n", data)
	return err
}

// github writes workflow commands of GitHub Actions.
func github(out io.Writer, findings []Finding) error {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, f := range findings {
		place := "file=" + property.Replace(f.File)
		if f.Line > 0 {
			place += fmt.Sprintf(",line=%d,col=%d", f.Line, f.Column)
		}
		if _, err := fmt.Fprintf(out, "::%s %s,title=%s::%s\n", f.Severity, place, property.Replace("fleet "+f.Rule), data.Replace(f.Message)); err != nil {
			return err
		}
	}
	return nil
}

// sarif writes a log of the Static Analysis Results Interchange Format, version 2.1.0.
func sarif(out io.Writer, findings []Finding) error {
	rules := []any{}
	for _, id := range slices.Sorted(maps.Keys(Rules)) {
		rules = append(rules, map[string]any{"id": id, "shortDescription": map[string]any{"text": Rules[id]}})
	}
	results := []any{}
	for _, f := range findings {
		place := map[string]any{"artifactLocation": map[string]any{"uri": (&url.URL{Path: f.File}).String()}}
		if f.Line > 0 {
			place["region"] = map[string]any{"startLine": f.Line, "startColumn": f.Column}
		}
		results = append(results, map[string]any{
			"ruleId": f.Rule, "level": string(f.Severity), "message": map[string]any{"text": f.Message},
			"locations": []any{map[string]any{"physicalLocation": place}},
		})
	}
	return encode(out, map[string]any{
		"$schema": "https://json.schemastore.org/sarif-2.1.0.json",
		"version": "2.1.0",
		"runs": []any{map[string]any{
			"tool":    map[string]any{"driver": map[string]any{"name": "fleet lint", "version": version.Version, "rules": rules}},
			"results": results,
		}},
	})
}
