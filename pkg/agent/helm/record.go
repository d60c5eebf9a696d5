package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/metadata"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Annotations of ours beside upstream's in a release's chart metadata, and labels on its records, by
// which releases are found without decoding them.
const (
	deploymentIDAnnotation    = "fleet.cattle.io/deployment-id"
	deleteCRDsAnnotation      = "fleet.cattle.io/delete-crd-resources"
	deleteNamespaceAnnotation = "fleet.cattle.io/delete-namespace"
	agentNamespaceLabel       = "fleet.cattle.io/agent-namespace"
	agentScopeLabel           = "fleet.cattle.io/agent-scope"
	bundleIDLabel             = "fleet.cattle.io/bundle-id"
)

// listPage is how many records are listed at a time.
const listPage = 500

// Record is what is known of the newest revision of a release.
type Record struct {
	// BundleID is the BundleDeployment the release belongs to.
	BundleID string
	// Name, Namespace and Revision of the release.
	Name, Namespace string
	Revision        int
	// DeploymentID that was deployed; "" for releases made by other agents.
	DeploymentID string
	// Deployed says that the revision was installed completely.
	Deployed bool
	// ServiceAccount and Policy as they were when it was deployed.
	ServiceAccount string
	Policy         Policy
	// Objects of the release as they are applied, in the order of the manifest; hooks are left out.
	Objects []*unstructured.Unstructured
	// Former are objects that only other stored revisions hold.
	Former []*unstructured.Unstructured
}

// String returns "namespace/name:revision", as a BundleDeployment's status names its release.
func (r Record) String() string {
	return r.Namespace + "/" + r.Name + ":" + strconv.Itoa(r.Revision)
}

// note leaves in a chart's metadata what is to be known when the options of its deployment are gone.
func note(annotations map[string]string, deploymentID string, options fleet.BundleDeploymentOptions) {
	annotations[deploymentIDAnnotation] = deploymentID
	for name, holds := range map[string]bool{
		deleteCRDsAnnotation: options.DeleteCRDResources, deleteNamespaceAnnotation: options.DeleteNamespace,
	} {
		if holds {
			annotations[name] = "true"
		}
	}
}

// recordOf reads a stored revision.
func (d *Deployer) recordOf(revision *release.Release) (Record, error) {
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
	objects, err := d.objectsIn(revision)
	record.Objects = objects
	return record, err
}

// objectsIn returns the objects of a revision as they were applied.
func (d *Deployer) objectsIn(revision *release.Release) ([]*unstructured.Unstructured, error) {
	objects, err := manifest.Parse([]byte(revision.Manifest))
	if err != nil {
		return nil, fmt.Errorf("read manifest of release %s/%s: %w", revision.Namespace, revision.Name, err)
	}
	for _, object := range objects {
		manifest.Concede(object)
		manifest.Adopt(object, revision.Name, revision.Namespace)
	}
	_, err = infos(objects, d.member.Mapper(), revision.Namespace) // gives namespaces
	return objects, err
}

// Locate puts those objects of a record into their namespace whose kind was not known when it was read, and is now.
func (d *Deployer) Locate(record Record) {
	for _, object := range record.Objects {
		if object.GetNamespace() != "" {
			continue
		}
		kind := object.GroupVersionKind()
		if mapping, err := d.member.Mapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
			locate(object, mapping, record.Namespace)
		}
	}
}

// former returns the objects of all revisions that are not among the present ones.
func (d *Deployer) former(revisions []*release.Release, present []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	seen := map[manifest.Key]bool{}
	for _, object := range present {
		seen[manifest.KeyOf(object)] = true
	}
	var former []*unstructured.Unstructured
	for _, revision := range revisions {
		objects, err := d.objectsIn(revision)
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

// List returns the releases of this agent, newest revisions only and without their objects. It reads
// metadata; only releases made by other agents are decoded, and only when they are new.
func (d *Deployer) List(ctx context.Context) ([]Record, error) {
	client, err := metadata.NewForConfig(d.member.Config())
	if err != nil {
		return nil, fmt.Errorf("list releases: %w", err)
	}
	newest := map[[2]string]Record{}
	options := metav1.ListOptions{LabelSelector: "owner=helm", Limit: listPage}
	for {
		page, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list releases: %w", err)
		}
		for i := range page.Items {
			record, mine, err := d.listed(ctx, &page.Items[i])
			if err != nil {
				return nil, fmt.Errorf("list releases: %w", err)
			}
			id := [2]string{record.Namespace, record.Name}
			if mine && record.Revision >= newest[id].Revision {
				newest[id] = record
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	records := make([]Record, 0, len(newest))
	for _, record := range newest {
		records = append(records, record)
	}
	slices.SortFunc(records, func(a, b Record) int { return compareText(a.String(), b.String()) })
	return records, nil
}

// listed reads one record's metadata and says whether the release is this agent's.
func (d *Deployer) listed(ctx context.Context, secret *metav1.PartialObjectMetadata) (Record, bool, error) {
	labels := secret.Labels
	revision, err := strconv.Atoi(labels["version"])
	if err != nil {
		return Record{}, false, nil
	}
	record := Record{Name: labels["name"], Namespace: secret.Namespace, Revision: revision, Deployed: labels["status"] == release.StatusDeployed.String()}
	if agent, labelled := labels[agentNamespaceLabel]; labelled {
		record.BundleID = labels[bundleIDLabel]
		return record, agent == d.options.AgentNamespace && labels[agentScopeLabel] == d.options.AgentScope, nil
	}
	return d.decoded(ctx, secret, record)
}

// decoded reads the annotations of a record without our labels: one of another agent's or of a person's.
func (d *Deployer) decoded(ctx context.Context, secret *metav1.PartialObjectMetadata, record Record) (Record, bool, error) {
	d.mu.Lock()
	bundle, known := d.foreign[secret.UID]
	d.mu.Unlock()
	if !known {
		self, err := d.member.Self()
		if err != nil {
			return record, false, err
		}
		stored, err := driver.NewSecrets(self.Clients.CoreV1().Secrets(secret.Namespace)).Get(secret.Name)
		if errors.Is(err, driver.ErrReleaseNotFound) {
			return record, false, nil
		}
		if err == nil && stored.Chart != nil && stored.Chart.Metadata != nil {
			annotations := stored.Chart.Metadata.Annotations
			if annotations[fleet.ReleaseAgentNamespaceAnnotation] == d.options.AgentNamespace {
				bundle = annotations[fleet.ReleaseBundleIDAnnotation]
			}
		}
		d.mu.Lock()
		d.foreign[secret.UID] = bundle
		d.mu.Unlock()
	}
	record.BundleID = bundle
	return record, bundle != "", ctx.Err()
}

// labelsFor returns the labels of a release's records.
func (d *Deployer) labelsFor(bundleID string) map[string]string {
	labels := map[string]string{
		agentNamespaceLabel: d.options.AgentNamespace,
		agentScopeLabel:     d.options.AgentScope,
		bundleIDLabel:       bundleID,
	}
	for key, value := range labels {
		if len(validation.IsValidLabelValue(value)) > 0 {
			delete(labels, key)
		}
	}
	return labels
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
