package lint

import (
	"context"
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/cli/project"
	"github.com/fairlead-dev/fairlead/pkg/target"
	"github.com/fairlead-dev/fairlead/pkg/target/options"
	"github.com/fairlead-dev/fairlead/pkg/target/values"
)

// alone returns the findings about what bundles deploy where no clusters are known: with their own options, and
// with those of each customization. Of values that depend on a cluster only the syntax is looked at.
func alone(ctx context.Context, bundles []bundle.Bundle, renderer *project.Renderer) ([]Finding, error) {
	var findings []Finding
	for _, made := range bundles {
		for i, layers := range variants(made.Object.Spec) {
			merged := options.Resolve(made.Object.Spec.BundleDeploymentOptions, layers...)
			finding := Finding{File: source(made), Severity: Error}
			template := values.Compile(merged.Helm)
			rendered, err := template.Render(values.Cluster{})
			if err != nil {
				if values.IsSyntax(err) {
					finding.Rule, finding.Message = "template", err.Error()
					findings = append(findings, finding)
				}
				continue
			}
			if !template.Static() {
				continue
			}
			merged.Helm = rendered.Helm
			// The id tells the variants apart; nothing is deployed by it.
			pair := project.Pair{Bundle: made, Targeted: target.Targeted{
				Wanted: &target.Wanted{Options: merged, DeploymentID: fmt.Sprintf("lint:%d", i)},
			}}
			if _, err := renderer.Objects(ctx, pair); err != nil {
				finding.Rule, finding.Message = "render", err.Error()
				findings = append(findings, finding.within(made))
			}
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("lint bundle %s: %w", made.Object.Name, err)
			}
		}
	}
	return findings, nil
}

// variants are the options that may come over the bundle's own: none, and each customization's.
func variants(spec fleet.BundleSpec) [][]fleet.BundleDeploymentOptions {
	all := [][]fleet.BundleDeploymentOptions{nil}
	for i := range max(len(spec.Targets)-len(spec.TargetRestrictions), 0) {
		if custom := spec.Targets[i]; !custom.DoNotDeploy && len(spec.TargetRestrictions) > 0 {
			all = append(all, []fleet.BundleDeploymentOptions{custom.BundleDeploymentOptions})
		}
	}
	return all
}
