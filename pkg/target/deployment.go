package target

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/target/rollout"
	"github.com/fairlead-dev/fairlead/pkg/target/values"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Keys of a deployment's Secret.
const (
	ValuesKey       = "values"
	StagedValuesKey = "stagedValues"
)

// Deployment is one deployment as it is to be written (or deleted).
type Deployment struct {
	// Object is complete. For an update it is the present object, with its resource version, changed.
	Object *fleet.BundleDeployment
	// Cluster is "namespace/name".
	Cluster string
	// Values is the data of the Secret named like the object; nil when there is none. Write it before the
	// object, so that no agent sees a hash without its values.
	Values map[string][]byte
	// NeedsCurrentValues says that the Secret's present ValuesKey must be kept, and is not known here: call
	// KeepValues with it before writing.
	NeedsCurrentValues bool
}

// KeepValues completes a deployment that goes on running its present values while others are staged.
// current is the data of ValuesKey in its Secret.
func (d *Deployment) KeepValues(current []byte) {
	var staged []byte
	if d.Values != nil {
		staged = d.Values[StagedValuesKey]
	}
	d.setValues(current, staged)
	d.NeedsCurrentValues = false
}

func (d *Deployment) setValues(current, staged []byte) {
	d.Values, d.Object.Spec.ValuesHash = nil, ""
	if len(current) == 0 && len(staged) == 0 {
		return
	}
	d.Values = map[string][]byte{}
	if len(current) > 0 {
		d.Values[ValuesKey] = current
	}
	if len(staged) > 0 {
		d.Values[StagedValuesKey] = staged
	}
	d.Object.Spec.ValuesHash = content.DeploymentValuesHash(current, staged)
}

// differs says that the object must be written. A commit alone is no reason: the pair runs what it ran.
func (d *Deployment) differs(current *fleet.BundleDeployment) bool {
	if d.NeedsCurrentValues || !equality.Semantic.DeepEqual(d.Object.Spec, current.Spec) {
		return true
	}
	if commit, labelled := current.Labels[fleet.CommitLabel]; labelled && d.Object.Labels[fleet.CommitLabel] != "" {
		d.Object.Labels[fleet.CommitLabel] = commit
	}
	return !maps.Equal(d.Object.Labels, current.Labels) || !slices.Equal(d.Object.Finalizers, current.Finalizers)
}

// build returns the wanted deployment, made from the current one when there is one.
func build(s Snapshot, target Targeted, action rollout.Action, current *fleet.BundleDeployment) (Deployment, error) {
	object := &fleet.BundleDeployment{}
	if current != nil {
		object = current.DeepCopy()
	}
	object.Namespace, object.Name = target.Cluster.DeploymentNamespace, s.Bundle.Name
	object.Labels = labelsOf(s, target.Cluster)
	for _, finalizer := range s.Finalizers {
		if !slices.Contains(object.Finalizers, finalizer) {
			object.Finalizers = append(object.Finalizers, finalizer)
		}
	}
	stripped, document, err := strip(target.Options)
	if err != nil {
		return Deployment{}, err
	}
	// Deployments are written at the same time, so they share nothing.
	bundle := sharedSpec(s.Bundle)
	spec := &object.Spec
	spec.Paused = bundle.Paused || target.Cluster.Paused
	spec.OffSchedule = target.Cluster.OffSchedule
	spec.DependsOn = bundle.DependsOn
	spec.CorrectDrift = stripped.CorrectDrift.DeepCopy()

	released := action.Release || (current != nil && spec.DeploymentID == target.DeploymentID)
	before := spec.StagedDeploymentID
	if action.Stage || released || before == target.DeploymentID {
		spec.StagedOptions, spec.StagedDeploymentID = stripped, target.DeploymentID
	}
	if released {
		spec.Options, spec.DeploymentID = *stripped.DeepCopy(), target.DeploymentID
		spec.OCIContents = bundle.ContentsID != ""
		spec.HelmChartOptions = bundle.HelmOpOptions
	}
	made := Deployment{Object: object, Cluster: target.Cluster.Key()}
	switch {
	case released:
		made.setValues(document, document)
	case spec.StagedDeploymentID == target.DeploymentID:
		made.stageValues(document, before == target.DeploymentID)
	}
	return made, nil
}

// stageValues sets the values of a deployment that is staged only. What it runs keeps its own.
func (d *Deployment) stageValues(document []byte, stagedBefore bool) {
	switch {
	case d.Object.Spec.DeploymentID == "":
		d.setValues(nil, document)
	case stagedBefore:
		// Both are in the Secret already.
	case d.Object.Spec.ValuesHash == "":
		d.setValues(nil, document)
	default:
		d.Values = map[string][]byte{StagedValuesKey: document}
		d.NeedsCurrentValues = true
	}
}

// sharedSpec returns a copy of what all deployments of a bundle have in common.
func sharedSpec(bundle *fleet.Bundle) *fleet.BundleSpec {
	return (&fleet.BundleSpec{
		Paused:        bundle.Spec.Paused,
		DependsOn:     bundle.Spec.DependsOn,
		ContentsID:    bundle.Spec.ContentsID,
		HelmOpOptions: bundle.Spec.HelmOpOptions,
	}).DeepCopy()
}

// strip takes the values out of options and returns them as JSON; nil when there are none.
func strip(options fleet.BundleDeploymentOptions) (fleet.BundleDeploymentOptions, []byte, error) {
	stripped := *options.DeepCopy()
	if stripped.Helm == nil || stripped.Helm.Values == nil {
		return stripped, nil, nil
	}
	tree := stripped.Helm.Values.Data
	stripped.Helm.Values = nil
	if len(tree) == 0 {
		return stripped, nil, nil
	}
	document, err := json.Marshal(tree)
	if err != nil {
		return stripped, nil, fmt.Errorf("encode values: %w", err)
	}
	return stripped, document, nil
}

// labelsOf returns a deployment's labels: the bundle's, and where it comes from and goes to.
func labelsOf(s Snapshot, cluster ClusterInfo) map[string]string {
	labels := values.Visible(s.Bundle.Labels, fleet.ReservedPrefix)
	labels[fleet.BundleLabel] = s.Bundle.Name
	labels[fleet.BundleNamespaceLabel] = s.Bundle.Namespace
	labels[fleet.ClusterLabel] = cluster.Name
	labels[fleet.ClusterNamespaceLabel] = cluster.Namespace
	labels[fleet.ManagedLabel] = "true"
	if s.Bundle.Spec.ContentsID == "" && s.Bundle.Spec.HelmOpOptions == nil {
		labels[fleet.ContentLabel] = s.ManifestID
	}
	return labels
}
