package target

import (
	"encoding/json"
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/policy"
	"github.com/fairlead-dev/fairlead/pkg/target/match"
	"github.com/fairlead-dev/fairlead/pkg/target/options"
	"github.com/fairlead-dev/fairlead/pkg/target/values"
)

// ReasonTemplate is the reason of the error for values that do not render for a cluster.
const ReasonTemplate = "TemplateFailed"

// Targeted is a cluster that a bundle reaches, with what it is to run.
type Targeted struct {
	Cluster *ClusterInfo
	Match   match.Result
	// Partitions are the indexes of the manual rollout partitions the cluster is in.
	Partitions []int
	// Wanted is never nil; it is empty where Err says why nothing could be made.
	*Wanted
	Err error

	// held says that the deployment does not render, or was not rendered yet, and is not sent.
	held bool
}

// Wanted is what a cluster is to run. Clusters that get the same share it, so that nobody may change it.
type Wanted struct {
	// Options with values in place.
	Options fleet.BundleDeploymentOptions
	// DeploymentID of the content with these options.
	DeploymentID string
	// Retyped are keys of values whose text was read as something other than text.
	Retyped []string

	// err says why the options could not be made; then they are empty.
	err error
	// stripped are the options without values, document the values as JSON, nil when there are none, and
	// valuesHash is that of a deployment that runs them.
	stripped   fleet.BundleDeploymentOptions
	document   []byte
	valuesHash string
}

// Targets returns the clusters that the snapshot's bundle reaches, in the order of rollouts, and warnings
// about cluster groups that cannot be read. An error is of class Stalled and about the bundle; what is wrong
// for one cluster only is in its Err.
func Targets(s Snapshot) ([]Targeted, []error, error) {
	memory := s.Memory
	if memory == nil {
		memory = &Memory{}
	}
	if err := memory.open(s); err != nil {
		return nil, nil, err
	}
	targets := make([]Targeted, 0, len(s.Clusters))
	for _, cluster := range sorted(s.Clusters) {
		if known := memory.evaluate(cluster); known.wanted != nil {
			targets = append(targets, Targeted{
				Cluster: cluster, Match: known.match, Partitions: known.partitions, Wanted: known.wanted, Err: known.wanted.err,
			})
		}
	}
	memory.prune(s)
	return targets, memory.warnings, nil
}

// resolver makes options. Merging is done once for all clusters with the same targets. Of a snapshot it keeps what
// it needs: the rest holds every cluster and deployment of a pass.
type resolver struct {
	bundle     *fleet.Bundle
	manifestID string
	rules      policy.Rules
	resolved   map[string]*resolved
}

type resolved struct {
	options  fleet.BundleDeploymentOptions
	template *values.Template
	// denied is why these options may not be used.
	denied error
	// static is what all clusters with labels (true) or without (false) get, where no value depends on
	// more of the cluster than that.
	static map[bool]*Wanted
}

// resolve makes the options for a cluster. Parts of them, or all, are shared between clusters.
func (r *resolver) resolve(cluster *ClusterInfo, result match.Result) *Wanted {
	shared := r.merge(result.Options(r.bundle.Spec.TargetCustomizationMode))
	if shared.denied != nil {
		return &Wanted{err: shared.denied}
	}
	if shared.static == nil {
		return r.render(cluster, shared)
	}
	labelled := cluster.Labelled()
	made := shared.static[labelled]
	if made == nil {
		made = r.render(cluster, shared)
		shared.static[labelled] = made
	}
	return made
}

// render makes the options for a cluster.
func (r *resolver) render(cluster *ClusterInfo, shared *resolved) *Wanted {
	rendered, err := shared.template.Render(cluster.renderable())
	if err != nil {
		return &Wanted{err: fault.Wrap(fault.Stalled, ReasonTemplate, err)}
	}
	made := &Wanted{Options: shared.options, Retyped: rendered.Retyped}
	made.Options.Helm = rendered.Helm
	if made.DeploymentID, made.err = content.DeploymentID(r.manifestID, made.Options); made.err != nil {
		return made
	}
	made.stripped, made.document, made.err = strip(made.Options)
	made.valuesHash = hashOf(made.document, made.document)
	return made
}

// strip takes the values out of options and returns them as JSON; nil when there are none.
func strip(options fleet.BundleDeploymentOptions) (fleet.BundleDeploymentOptions, []byte, error) {
	if options.Helm == nil || options.Helm.Values == nil {
		return options, nil, nil
	}
	tree := options.Helm.Values.Data
	helm := *options.Helm
	helm.Values = nil
	options.Helm = &helm
	if len(tree) == 0 {
		return options, nil, nil
	}
	document, err := json.Marshal(tree)
	if err != nil {
		return options, nil, fmt.Errorf("encode values: %w", err)
	}
	return options, document, nil
}

func (r *resolver) merge(indexes []int) *resolved {
	key := fmt.Sprint(indexes)
	if known := r.resolved[key]; known != nil {
		return known
	}
	spec := &r.bundle.Spec
	layers := make([]fleet.BundleDeploymentOptions, 0, len(indexes))
	for _, index := range indexes {
		layers = append(layers, spec.Targets[index].BundleDeploymentOptions)
	}
	merged := options.Resolve(spec.BundleDeploymentOptions, layers...)
	merged = r.rules.Apply(merged)
	made := &resolved{options: merged, template: values.Compile(merged.Helm), denied: r.rules.Deployment(&merged)}
	if made.template.Static() {
		made.static = map[bool]*Wanted{}
	}
	r.resolved[key] = made
	return made
}
