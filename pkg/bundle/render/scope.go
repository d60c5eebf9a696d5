package render

import (
	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-dev/fairlead/pkg/bundle/render/manifest"
)

// Scoper says whether a kind lives in namespaces. Kinds it does not know are taken for namespaced.
type Scoper interface {
	Namespaced(kind schema.GroupKind) (namespaced, known bool)
}

// BuiltIn is the Scoper that knows the kinds every cluster has.
type BuiltIn struct{}

// clusterScoped are the built-in kinds without a namespace, by group.
var clusterScoped = map[string][]string{
	"":                             {"Namespace", "Node", "PersistentVolume", "ComponentStatus"},
	"admissionregistration.k8s.io": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"authentication.k8s.io":        {"SelfSubjectReview", "TokenReview"},
	"authorization.k8s.io":         {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"networking.k8s.io":            {"IngressClass", "IPAddress", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"policy":                       {"PodSecurityPolicy"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "ResourceSlice", "DeviceTaintRule"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
}

// Namespaced returns false, true for the built-in kinds without a namespace, and true, false for all others.
func (BuiltIn) Namespaced(kind schema.GroupKind) (namespaced, known bool) {
	for _, name := range clusterScoped[kind.Group] {
		if name == kind.Kind {
			return false, true
		}
	}
	return true, false
}

// scopes asks the caller's scoper first, then the definitions that come with the bundle, then BuiltIn.
type scopes struct {
	scoper  Scoper
	defined map[schema.GroupKind]bool
}

// scopesOf knows the kinds that the chart's crds/ folders define.
func scopesOf(scoper Scoper, from *chart.Chart) scopes {
	result := scopes{scoper: scoper, defined: map[schema.GroupKind]bool{}}
	for _, crd := range from.CRDObjects() {
		// A broken definition is Helm's to report, when it installs it.
		objects, err := manifest.Parse(crd.Filename, crd.File.Data)
		if err != nil {
			continue
		}
		result = result.with(objects)
	}
	return result
}

// with adds the kinds that objects define.
func (s scopes) with(objects []manifest.Object) scopes {
	defined := map[schema.GroupKind]bool{}
	for kind, namespaced := range s.defined {
		defined[kind] = namespaced
	}
	for _, object := range objects {
		if !isCRD(object.Unstructured) {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
		defined[schema.GroupKind{Group: group, Kind: kind}] = scope != "Cluster"
	}
	return scopes{scoper: s.scoper, defined: defined}
}

func (s scopes) namespaced(kind schema.GroupKind) bool {
	if s.scoper != nil {
		if namespaced, known := s.scoper.Namespaced(kind); known {
			return namespaced
		}
	}
	if namespaced, known := s.defined[kind]; known {
		return namespaced
	}
	namespaced, _ := BuiltIn{}.Namespaced(kind)
	return namespaced
}

func isCRD(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{
		Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition",
	}
}
