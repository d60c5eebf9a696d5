package target

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/target/rollout"
	"github.com/fairlead-dev/fairlead/pkg/target/values"
)

// Keys of a deployment's Secret.
const (
	ValuesKey       = "values"
	StagedValuesKey = "stagedValues"
)

// Deployment is one deployment as it is to be written (or deleted).
type Deployment struct {
	// Object is complete. For an update it is a copy of the present object, with its resource version, changed. What
	// it points to others may have too: of that only its labels, annotations and finalizers may be changed.
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
	d.Values = valuesData(current, staged)
	d.Object.Spec.ValuesHash = hashOf(current, staged)
}

func valuesData(current, staged []byte) map[string][]byte {
	if len(current) == 0 && len(staged) == 0 {
		return nil
	}
	data := map[string][]byte{}
	if len(current) > 0 {
		data[ValuesKey] = current
	}
	if len(staged) > 0 {
		data[StagedValuesKey] = staged
	}
	return data
}

func hashOf(current, staged []byte) string {
	if len(current) == 0 && len(staged) == 0 {
		return ""
	}
	return content.DeploymentValuesHash(current, staged)
}

// drafts makes the drafts of a plan, one after the other in the same place: most of them are like what is there
// already, and are thrown away.
type drafts struct {
	snapshot *Snapshot
	// common are the labels that all deployments of the bundle have.
	common map[string]string
	draft  draft
}

// draft is a deployment before it is known whether it must be written: it shares what it is made from.
type draft struct {
	labels     map[string]string
	finalizers []string
	spec       fleet.BundleDeploymentSpec
	// values and stagedValues are what its Secret is to hold.
	values, stagedValues []byte
	// needsCurrentValues is as in Deployment.
	needsCurrentValues bool
	// released is the value of the annotation of that name; empty when there is none.
	released string
}

func newDrafts(s *Snapshot) *drafts {
	return &drafts{snapshot: s, common: commonLabels(s), draft: draft{labels: map[string]string{}}}
}

// next returns the wanted deployment, made from the current one when there is one. It takes the place of the one
// before.
func (m *drafts) next(target *Targeted, action rollout.Action, current *fleet.BundleDeployment) *draft {
	s, d := m.snapshot, &m.draft
	*d = draft{labels: m.labels(target.Cluster)}
	if current != nil {
		d.spec, d.finalizers = current.Spec, slices.Clip(current.Finalizers)
		d.released = current.Annotations[fleet.ReleasedAnnotation]
	}
	for _, finalizer := range s.Finalizers {
		if !slices.Contains(d.finalizers, finalizer) {
			d.finalizers = append(d.finalizers, finalizer)
		}
	}
	bundle, spec := &s.Bundle.Spec, &d.spec
	spec.Paused = bundle.Paused || target.Cluster.Paused
	spec.OffSchedule = target.Cluster.OffSchedule
	spec.DependsOn = bundle.DependsOn
	spec.CorrectDrift = target.Options.CorrectDrift

	released := action.Release || (current != nil && spec.DeploymentID == target.DeploymentID)
	d.stamp(s, target.DeploymentID, released, current)
	stagedBefore := spec.StagedDeploymentID == target.DeploymentID
	if action.Stage || released || stagedBefore {
		spec.StagedOptions, spec.StagedDeploymentID = target.stripped, target.DeploymentID
	}
	switch {
	case released:
		spec.Options, spec.DeploymentID = target.stripped, target.DeploymentID
		spec.OCIContents = content.InRegistry(bundle)
		spec.HelmChartOptions = bundle.HelmOpOptions
		d.values, d.stagedValues, spec.ValuesHash = target.document, target.document, target.valuesHash
	case spec.StagedDeploymentID == target.DeploymentID:
		d.stageValues(target.document, stagedBefore)
	case current != nil:
		// It is told nothing yet and goes on referring to what it refers to.
		delete(d.labels, fleet.ContentLabel)
		if id, has := current.Labels[fleet.ContentLabel]; has {
			d.labels[fleet.ContentLabel] = id
		}
	}
	return d
}

// stamp notes when the agent is told, or may act again, in the write that says so. A deployment that was
// told before the rollout looked at time, and is not ready, counts from now on.
func (d *draft) stamp(s *Snapshot, id string, told bool, current *fleet.BundleDeployment) {
	tells := told && d.spec.DeploymentID != id
	wanted := !s.Now.IsZero() && timed(s.Bundle)
	if !wanted {
		if tells {
			d.released = ""
		}
		return
	}
	lags, freed := false, false
	if current != nil {
		lags = told && (current.Status.AppliedDeploymentID != id || !current.Status.Ready)
		freed = (current.Spec.Paused || current.Spec.OffSchedule) && !d.spec.Paused && !d.spec.OffSchedule
	}
	if tells || lags && (freed || d.released == "") {
		d.released = s.Now.UTC().Format(time.RFC3339)
	}
}

// stageValues sets the values of a deployment that is staged only. What it runs keeps its own.
func (d *draft) stageValues(document []byte, stagedBefore bool) {
	switch {
	case d.spec.DeploymentID != "" && stagedBefore:
		// Both are in the Secret already.
	case d.spec.DeploymentID == "" || d.spec.ValuesHash == "":
		d.stagedValues, d.spec.ValuesHash = document, hashOf(nil, document)
	default:
		d.stagedValues, d.needsCurrentValues = document, true
	}
}

// differs says that the object must be written. A commit alone is no reason: the pair runs what it ran.
func (d *draft) differs(current *fleet.BundleDeployment) bool {
	// The strict comparison is much cheaper and nearly always enough.
	if d.needsCurrentValues || !reflect.DeepEqual(&d.spec, &current.Spec) && !equality.Semantic.DeepEqual(&d.spec, &current.Spec) {
		return true
	}
	if commit, labelled := current.Labels[fleet.CommitLabel]; labelled && d.labels[fleet.CommitLabel] != "" {
		d.labels[fleet.CommitLabel] = commit
	}
	return d.released != current.Annotations[fleet.ReleasedAnnotation] ||
		!maps.Equal(d.labels, current.Labels) || !slices.Equal(d.finalizers, current.Finalizers)
}

// deployment returns what is to be written. It shares with the present one and with its siblings all that is not
// changed: a plan may be of thousands.
func (d *draft) deployment(s *Snapshot, cluster *ClusterInfo, current *fleet.BundleDeployment) Deployment {
	object := &fleet.BundleDeployment{}
	if current != nil {
		*object = *current
		object.Annotations = maps.Clone(current.Annotations)
	}
	object.Namespace, object.Name = cluster.DeploymentNamespace, s.Bundle.Name
	object.Labels, object.Finalizers = maps.Clone(d.labels), slices.Clone(d.finalizers)
	if d.released != "" {
		metav1.SetMetaDataAnnotation(&object.ObjectMeta, fleet.ReleasedAnnotation, d.released)
	} else {
		delete(object.Annotations, fleet.ReleasedAnnotation)
	}
	object.Spec = d.spec
	return Deployment{
		Object: object, Cluster: cluster.Key(), NeedsCurrentValues: d.needsCurrentValues,
		Values: valuesData(d.values, d.stagedValues),
	}
}

// labels returns a deployment's labels: the bundle's, and where it comes from and goes to.
func (m *drafts) labels(cluster *ClusterInfo) map[string]string {
	labels := m.draft.labels
	clear(labels)
	maps.Copy(labels, m.common)
	labels[fleet.ClusterLabel] = cluster.Name
	labels[fleet.ClusterNamespaceLabel] = cluster.Namespace
	return labels
}

// commonLabels returns the labels that all deployments of a bundle have.
func commonLabels(s *Snapshot) map[string]string {
	labels := values.Visible(s.Bundle.Labels, fleet.ReservedPrefix)
	labels[fleet.BundleLabel] = s.Bundle.Name
	if ref := s.Bundle.Labels[fleet.ShardLabel]; ref != "" {
		labels[fleet.ShardLabel] = ref
	}
	labels[fleet.BundleNamespaceLabel] = s.Bundle.Namespace
	labels[fleet.ManagedLabel] = "true"
	if !content.InRegistry(&s.Bundle.Spec) && s.Bundle.Spec.HelmOpOptions == nil {
		labels[fleet.ContentLabel] = s.ManifestID
	}
	return labels
}
