package lint

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/cli/inventory"
	"github.com/fairlead-dev/fairlead/pkg/cli/project"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// read returns the findings about what was read.
func read(result *bundle.Result, owner string) []Finding {
	var findings []Finding
	for _, warning := range result.Warnings {
		finding := Finding{
			File: warning.File, Line: warning.Line, Column: warning.Column,
			Severity: Warning, Rule: "fleet-yaml", Message: warning.Message,
		}
		if slices.Contains(result.UnmatchedPaths, warning.File) {
			finding.Rule = "path"
		}
		findings = append(findings, finding)
	}
	for _, failure := range result.Failed {
		for _, err := range parts(failure.Err) {
			findings = append(findings, Finding{File: failure.Dir, Severity: Error, Rule: "bundle", Message: err.Error()}.at())
		}
	}
	for _, made := range result.Bundles {
		findings = append(findings, name(made, owner)...)
		findings = append(findings, valuesFiles(made)...)
	}
	return append(findings, cycles(result.Bundles)...)
}

// parts takes joined errors apart.
func parts(err error) []error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if joined, ok := inner.(interface{ Unwrap() []error }); ok {
			return joined.Unwrap()
		}
	}
	return []error{err}
}

// name finds a derived name that holds a digest, which nobody can guess.
func name(made bundle.Bundle, owner string) []Finding {
	plain := strings.ReplaceAll(path.Join(owner, made.Dir), "/", "-")
	if made.Object.Name == plain || made.Object.Name != names.Bundle(owner, made.Dir, "") {
		return nil
	}
	if squeezed := strings.Trim(manyDashes.ReplaceAllString(plain, "-"), "-"); made.Object.Name == squeezed {
		return nil
	}
	return []Finding{{
		File: source(made), Severity: Warning, Rule: "hashed-name",
		Message: fmt.Sprintf("the bundle is called %s, because %q cannot be a name; set name: in fleet.yaml to choose one", made.Object.Name, plain),
	}}
}

var (
	manyDashes = regexp.MustCompile(`-+`)
	valuesName = regexp.MustCompile(`^values([-._].*)?\.ya?ml$`)
)

func source(made bundle.Bundle) string {
	if made.File != "" {
		return made.File
	}
	return made.Dir
}

// valuesFiles finds files that look like values and travel as files instead. A chart's own values.yaml is used.
func valuesFiles(made bundle.Bundle) []Finding {
	shipped := map[string]bool{}
	for _, resource := range made.Object.Spec.Resources {
		shipped[resource.Name] = true
	}
	var findings []Finding
	for _, resource := range made.Object.Spec.Resources {
		dir, base := path.Split(resource.Name)
		isOwn := base == "values.yaml" && shipped[path.Join(dir, "Chart.yaml")]
		if strings.HasPrefix(resource.Name, ".") || isOwn || !valuesName.MatchString(base) {
			continue
		}
		findings = append(findings, Finding{
			File: path.Join(made.Dir, resource.Name), Severity: Warning, Rule: "unused-values-file",
			Message: "no helm.valuesFiles names this file, so it has no effect on values; name it, or leave it out with .fleetignore",
		})
	}
	return findings
}

// targeted returns the findings that depend on clusters.
func targeted(ctx context.Context, bundles []bundle.Bundle, known inventory.Inventory, renderer *project.Renderer) ([]Finding, error) {
	var findings []Finding
	for _, made := range bundles {
		pairs, err := project.Pairs([]bundle.Bundle{made}, known)
		if err != nil {
			findings = append(findings, Finding{File: source(made), Severity: Error, Rule: "bundle", Message: err.Error()})
			continue
		}
		if len(pairs) == 0 {
			findings = append(findings, Finding{
				File: source(made), Severity: Warning, Rule: "no-cluster", Message: fmt.Sprintf("bundle %s reaches none of the clusters", made.Object.Name)})
		}
		findings = append(findings, customizations(made, pairs)...)
		onClusters := map[Finding][]string{}
		for _, pair := range pairs {
			for _, finding := range onCluster(ctx, pair, renderer) {
				onClusters[finding] = append(onClusters[finding], pair.Cluster.Key())
			}
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("lint bundle %s: %w", made.Object.Name, err)
			}
		}
		for finding, clusters := range onClusters {
			finding.Message += " (on " + someOf(clusters) + ")"
			findings = append(findings, finding)
		}
	}
	return findings, nil
}

// shownClusters bounds the clusters named in a finding.
const shownClusters = 3

func someOf(clusters []string) string {
	if more := len(clusters) - shownClusters; more > 0 {
		return fmt.Sprintf("%s and %d more clusters", strings.Join(clusters[:shownClusters], ", "), more)
	}
	return strings.Join(clusters, ", ")
}

func onCluster(ctx context.Context, pair project.Pair, renderer *project.Renderer) []Finding {
	file := source(pair.Bundle)
	if pair.Err != nil {
		return []Finding{{File: file, Severity: Error, Rule: "template", Message: pair.Err.Error()}}
	}
	var findings []Finding
	for _, key := range pair.Retyped {
		findings = append(findings, Finding{File: file, Severity: Warning, Rule: "retyped",
			Message: fmt.Sprintf("the template of %s yields text that is read as a number, a boolean or null; quote it in the template if text is meant", key)})
	}
	if _, err := renderer.Objects(ctx, pair); err != nil {
		findings = append(findings, Finding{File: file, Severity: Error, Rule: "render", Message: err.Error()}.within(pair.Bundle))
	}
	return findings
}

// customizations finds those that apply nowhere. A bundle without restrictions has none: all its targets
// are destinations.
func customizations(made bundle.Bundle, pairs []project.Pair) []Finding {
	used := map[int]bool{}
	for _, pair := range pairs {
		for _, index := range pair.Match.Customizations {
			used[index] = true
		}
	}
	spec := made.Object.Spec
	var findings []Finding
	for i := range max(len(spec.Targets)-len(spec.TargetRestrictions), 0) {
		if used[i] || spec.Targets[i].DoNotDeploy || len(spec.TargetRestrictions) == 0 {
			continue
		}
		findings = append(findings, Finding{File: source(made), Severity: Warning, Rule: "unused-customization",
			Message: fmt.Sprintf("the customization %q applies to no cluster; `fleet explain` says why", spec.Targets[i].Name)})
	}
	return findings
}
