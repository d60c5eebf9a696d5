package target

import (
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/target/match"
	"github.com/fairlead-dev/fairlead/pkg/target/options"
	"github.com/fairlead-dev/fairlead/pkg/target/values"
)

// ReasonTemplate is the reason of the error for values that do not render for a cluster.
const ReasonTemplate = "TemplateFailed"

// Targeted is a cluster that a bundle reaches, with what it is to run.
type Targeted struct {
	Cluster ClusterInfo
	Match   match.Result
	// Partitions are the indexes of the manual rollout partitions the cluster is in.
	Partitions []int
	// Options with values in place.
	Options fleet.BundleDeploymentOptions
	// DeploymentID of the content with these options.
	DeploymentID string
	// Retyped are keys of values whose text was read as something other than text.
	Retyped []string
	// Err says why the options could not be made; then they are empty.
	Err error
}

// Targets returns the clusters that the snapshot's bundle reaches, in the order of rollouts, and warnings
// about cluster groups that cannot be read. An error is of class Stalled and about the bundle; what is wrong
// for one cluster only is in its Err.
func Targets(s Snapshot) ([]Targeted, []error, error) {
	spec := &s.Bundle.Spec
	matcher, err := match.Compile(spec)
	if err != nil {
		return nil, nil, fmt.Errorf("target bundle %s/%s: %w", s.Bundle.Namespace, s.Bundle.Name, err)
	}
	groups, warnings := match.Groups(s.Groups)
	resolver := &resolver{snapshot: s, resolved: map[string]*resolved{}}
	var targets []Targeted
	for _, cluster := range sorted(s.Clusters) {
		in := match.GroupsOf(cluster.matchable(), groups)
		result := matcher.Match(cluster.matchable(), in)
		if !result.Deploy {
			continue
		}
		target := Targeted{Cluster: cluster, Match: result, Partitions: matcher.Partitions(cluster.matchable(), in)}
		resolver.resolve(&target)
		targets = append(targets, target)
	}
	return targets, warnings, nil
}

// resolver makes options. Merging is done once for all clusters with the same targets.
type resolver struct {
	snapshot Snapshot
	resolved map[string]*resolved
}

type resolved struct {
	options  fleet.BundleDeploymentOptions
	template *values.Template
}

func (r *resolver) resolve(target *Targeted) {
	shared := r.merge(target.Match.Options(r.snapshot.Bundle.Spec.TargetCustomizationMode))
	rendered, err := shared.template.Render(target.Cluster.renderable())
	if err != nil {
		target.Err = fault.Wrap(fault.Stalled, ReasonTemplate, err)
		return
	}
	target.Options = shared.options
	target.Options.Helm = rendered.Helm
	target.Retyped = rendered.Retyped
	target.DeploymentID, target.Err = content.DeploymentID(r.snapshot.ManifestID, target.Options)
}

func (r *resolver) merge(indexes []int) *resolved {
	key := fmt.Sprint(indexes)
	if known := r.resolved[key]; known != nil {
		return known
	}
	spec := &r.snapshot.Bundle.Spec
	layers := make([]fleet.BundleDeploymentOptions, 0, len(indexes))
	for _, index := range indexes {
		layers = append(layers, spec.Targets[index].BundleDeploymentOptions)
	}
	merged := options.Resolve(spec.BundleDeploymentOptions, layers...)
	if r.snapshot.AllowedTargetNamespaceSelector != nil {
		merged.AllowedTargetNamespaceSelector = r.snapshot.AllowedTargetNamespaceSelector.DeepCopy()
	}
	if r.snapshot.ForbidNamespaceCreation {
		no := false
		merged.CreateNamespace = &no
	}
	made := &resolved{options: merged, template: values.Compile(merged.Helm)}
	r.resolved[key] = made
	return made
}
