package releases

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/kubeclient"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/records"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
)

// Agent tells an agent's releases from those of others.
type Agent struct {
	Namespace, Scope string
}

// Reader reads the releases of a member. Its methods may be called from several goroutines.
type Reader struct {
	member *access.Member
	agent  Agent

	mu      sync.Mutex
	foreign map[types.UID]string // bundle of records without our labels; "" for releases of others
}

// NewReader returns a reader of a member's releases.
func NewReader(member *access.Member, agent Agent) *Reader {
	return &Reader{member: member, agent: agent, foreign: map[types.UID]string{}}
}

// Current returns what is installed of a bundle, and false when there is nothing: the revision that was
// last installed completely, or the newest if none was. Its Deployed is false when a newer attempt
// failed or was cut off.
func (r *Reader) Current(ctx context.Context, bundleID string, options fleet.BundleDeploymentOptions) (Record, bool, error) {
	identity, err := r.member.As(ctx, options.ServiceAccount)
	if err != nil {
		return Record{}, false, err
	}
	stored := records.For(identity.Clients.CoreV1().Secrets(render.ReleaseNamespace(options)), nil)
	revisions, err := records.History(stored, render.ReleaseName(bundleID, options))
	if err != nil || len(revisions) == 0 {
		return Record{}, false, err
	}
	newest := revisions[len(revisions)-1]
	installed := newest
	for _, revision := range slices.Backward(revisions) {
		if status := revision.Info.Status; status == release.StatusDeployed || status == release.StatusSuperseded {
			installed = revision
			break
		}
	}
	record, err := r.Record(installed)
	if err != nil || record.BundleID != bundleID {
		return Record{}, false, err
	}
	record.Deployed = newest.Info.Status == release.StatusDeployed
	record.Former, err = r.Former(revisions, record.Objects)
	return record, true, err
}

// Record reads a stored revision.
func (r *Reader) Record(revision *release.Release) (Record, error) {
	record := Record{
		Name: revision.Name, Namespace: revision.Namespace, Revision: revision.Version,
		Deployed: revision.Info != nil && revision.Info.Status == release.StatusDeployed,
	}
	if revision.Chart != nil && revision.Chart.Metadata != nil {
		annotations := revision.Chart.Metadata.Annotations
		record.BundleID = annotations[fleet.ReleaseBundleIDAnnotation]
		record.DeploymentID = annotations[deploymentIDAnnotation]
		record.ServiceAccount = annotations[fleet.ReleaseServiceAccountAnnotation]
		record.Policy = Policy{
			KeepResources:      annotations[fleet.ReleaseKeepResourcesAnnotation] == "true",
			DeleteCRDResources: annotations[deleteCRDsAnnotation] == "true",
			DeleteNamespace:    annotations[deleteNamespaceAnnotation] == "true",
		}
	}
	objects, err := r.Objects(revision)
	record.Objects = objects
	return record, err
}

// Objects returns the objects of a revision as they were applied.
func (r *Reader) Objects(revision *release.Release) ([]*unstructured.Unstructured, error) {
	objects, err := manifest.Parse([]byte(revision.Manifest))
	if err != nil {
		return nil, fmt.Errorf("read manifest of release %s/%s: %w", revision.Namespace, revision.Name, err)
	}
	for _, object := range objects {
		manifest.Concede(object)
		manifest.Adopt(object, revision.Name, revision.Namespace)
	}
	return objects, kubeclient.Locate(objects, r.member.Mapper(), revision.Namespace)
}

// Locate puts those objects of a record into their namespace whose kind was not known when it was read, and is now.
func (r *Reader) Locate(record Record) {
	for _, object := range record.Objects {
		if object.GetNamespace() != "" {
			continue
		}
		_ = kubeclient.LocateLate(object, r.member.Mapper(), record.Namespace) // unknown still: the next look tells
	}
}

// Former returns the objects of all revisions that are not among the present ones.
func (r *Reader) Former(revisions []*release.Release, present []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	seen := manifest.Keys(present)
	var former []*unstructured.Unstructured
	for _, revision := range revisions {
		objects, err := r.Objects(revision)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if key := manifest.KeyOf(object); !seen[key] {
				seen[key] = true
				former = append(former, object)
			}
		}
	}
	return former, nil
}

// Labels returns the labels of the records of a bundle's release.
func (r *Reader) Labels(bundleID string) map[string]string {
	labels := map[string]string{
		agentNamespaceLabel: r.agent.Namespace,
		agentScopeLabel:     r.agent.Scope,
		bundleIDLabel:       bundleID,
	}
	for key, value := range labels {
		if len(validation.IsValidLabelValue(value)) > 0 {
			delete(labels, key)
		}
	}
	return labels
}
