package releases

import (
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

// Note leaves in a chart's metadata what is to be known when the options of its deployment are gone.
func Note(annotations map[string]string, deploymentID string, options fleet.BundleDeploymentOptions) {
	annotations[deploymentIDAnnotation] = deploymentID
	for name, holds := range map[string]bool{
		deleteCRDsAnnotation: options.DeleteCRDResources, deleteNamespaceAnnotation: options.DeleteNamespace,
	} {
		if holds {
			annotations[name] = "true"
		}
	}
}

// Policy says what becomes of what a release holds when it is taken away.
type Policy struct {
	// KeepResources leaves the objects and removes the release's records.
	KeepResources bool
	// DeleteCRDResources deletes definitions too.
	DeleteCRDResources bool
	// DeleteNamespace deletes the release namespace afterwards.
	DeleteNamespace bool
}

// PolicyOf returns what a bundle's options say.
func PolicyOf(options fleet.BundleDeploymentOptions) Policy {
	return Policy{
		KeepResources: options.KeepResources, DeleteCRDResources: options.DeleteCRDResources, DeleteNamespace: options.DeleteNamespace,
	}
}
