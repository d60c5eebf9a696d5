package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BundleDeploymentOptions say how a tree of files becomes objects on a cluster. They appear in a
// Bundle, in its targets, in fleet.yaml, and merged in a BundleDeployment. The field order is part of
// the deployment id.
type BundleDeploymentOptions struct {
	// Kustomize selects the folder to build.
	// +nullable
	// +optional
	Kustomize *KustomizeOptions `json:"kustomize,omitempty"`

	// YAML holds options for bundles of plain manifests.
	// +nullable
	// +optional
	YAML *YAMLOptions `json:"yaml,omitempty"`

	// DefaultNamespace receives the release and every object that names no namespace.
	// +nullable
	// +optional
	DefaultNamespace string `json:"defaultNamespace,omitempty"`

	// TargetNamespace forces every object into one namespace; cluster-scoped objects make the deployment fail.
	// +nullable
	// +optional
	TargetNamespace string `json:"namespace,omitempty"`

	// Helm holds the chart, its values and how to install it.
	// +nullable
	// +optional
	Helm *HelmOptions `json:"helm,omitempty"`

	// ServiceAccount in the agent's namespace on the member that reads and writes for this bundle.
	// +nullable
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`

	// ForceSyncGeneration redeploys when it is raised.
	// +optional
	ForceSyncGeneration int64 `json:"forceSyncGeneration,omitempty"`

	// Diff lists what a comparison with the live objects leaves out.
	// +nullable
	// +optional
	Diff *DiffOptions `json:"diff,omitempty"`

	// KeepResources leaves the objects on the member when the deployment is removed.
	// +optional
	KeepResources bool `json:"keepResources,omitempty"`

	// DeleteNamespace removes the release namespace with the deployment.
	// +optional
	DeleteNamespace bool `json:"deleteNamespace,omitempty"`

	// IgnoreOptions name status conditions that do not count for readiness.
	// +nullable
	// +optional
	IgnoreOptions *IgnoreOptions `json:"ignore,omitempty"`

	// CorrectDrift restores objects that were changed on the member.
	// +optional
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`

	// NamespaceLabels are put on the release namespace.
	// +nullable
	// +optional
	NamespaceLabels map[string]string `json:"namespaceLabels,omitempty"`

	// NamespaceAnnotations are put on the release namespace.
	// +nullable
	// +optional
	NamespaceAnnotations map[string]string `json:"namespaceAnnotations,omitempty"`

	// DeleteCRDResources removes custom resource definitions with the release, and with them every
	// custom resource.
	// +optional
	DeleteCRDResources bool `json:"deleteCRDResources,omitempty"`

	// DownstreamResources are Secrets and ConfigMaps copied from the bundle's namespace to the member.
	// +optional
	DownstreamResources []DownstreamResource `json:"downstreamResources,omitempty"`

	// Overwrites lists objects taken over from a bundle that was removed.
	// +optional
	Overwrites []OverwrittenResource `json:"overwrites,omitempty"`

	// CreateNamespace says whether the release namespace may be created; nil means yes.
	// +nullable
	// +optional
	CreateNamespace *bool `json:"createNamespace,omitempty"`

	// AllowedTargetNamespaceSelector restricts the release namespace; set by the hub from restrictions.
	// +nullable
	// +optional
	AllowedTargetNamespaceSelector *metav1.LabelSelector `json:"allowedTargetNamespaceSelector,omitempty"`

	// Apply says how objects are written on the member (our addition).
	// +optional
	Apply *ApplyOptions `json:"apply,omitempty"`

	// ManifestConfigs say for some of the objects how they are written and when they are ready (our addition).
	// Of two that select an object the later one decides how it is written; their rules all count.
	// +optional
	ManifestConfigs []ManifestConfig `json:"manifestConfigs,omitempty"`
}

// ApplyStrategy says what the agent may do to an object.
type ApplyStrategy string

// The strategies.
const (
	// ApplyHelm writes by server-side apply; drift is corrected when correctDrift says so.
	ApplyHelm ApplyStrategy = "Helm"
	// ApplyServerSide is as ApplyHelm, and drift is corrected unless correctDrift says otherwise.
	ApplyServerSide ApplyStrategy = "ServerSideApply"
	// ApplyCreateOnly creates an object that is not there, and leaves one that is as it is.
	ApplyCreateOnly ApplyStrategy = "CreateOnly"
	// ApplyReadOnly never writes an object; it is looked at.
	ApplyReadOnly ApplyStrategy = "ReadOnly"
)

// ApplyOptions say how objects are written on the member.
type ApplyOptions struct {
	// Strategy is Helm (the default), ServerSideApply, CreateOnly or ReadOnly.
	// +kubebuilder:validation:Enum=Helm;ServerSideApply;CreateOnly;ReadOnly
	// +optional
	Strategy ApplyStrategy `json:"strategy,omitempty"`
	// Force takes fields from other field managers; nil means yes. Without it the deployment fails and names
	// the other manager.
	// +optional
	Force *bool `json:"force,omitempty"`
	// IgnoreFields are left to the member.
	// +optional
	IgnoreFields []IgnoreFields `json:"ignoreFields,omitempty"`
}

// IgnoreCondition says when a field is left to the member.
type IgnoreCondition string

// The conditions.
const (
	// OnMemberPresent leaves a field alone once the object is there.
	OnMemberPresent IgnoreCondition = "OnMemberPresent"
	// OnMemberChange leaves a field alone until its value in git changes.
	OnMemberChange IgnoreCondition = "OnMemberChange"
)

// IgnoreFields name fields that are left to the member.
type IgnoreFields struct {
	// Condition is OnMemberPresent (the field is written when the object is created and never again) or
	// OnMemberChange (it is written again when its value in git changes).
	// +kubebuilder:validation:Enum=OnMemberPresent;OnMemberChange
	Condition IgnoreCondition `json:"condition"`
	// JSONPointers as RFC 6901 has them: /spec/replicas.
	// +optional
	JSONPointers []string `json:"jsonPointers,omitempty"`
	// JSONPaths: .spec.template.spec.containers[?(@.name=="web")].image; [*] and [0] are understood too.
	// +optional
	JSONPaths []string `json:"jsonPaths,omitempty"`
}

// ManifestConfig is about the objects it selects.
type ManifestConfig struct {
	// Resource selects objects.
	Resource ResourceSelector `json:"resource"`
	// Apply replaces what the bundle says for all its objects, field by field.
	// +optional
	Apply *ApplyOptions `json:"apply,omitempty"`
	// ConditionRules say when an object is ready, on top of what is known of its kind. They do not change what
	// is deployed.
	// +optional
	ConditionRules []ConditionRule `json:"conditionRules,omitempty"`
}

// ResourceSelector selects objects; what is left out selects all.
type ResourceSelector struct {
	// APIVersion as in "apps/v1".
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// +optional
	Kind string `json:"kind,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	Name string `json:"name,omitempty"`
}

// ConditionRule is one more thing an object needs to be ready: an expression or a condition.
type ConditionRule struct {
	// Name of the rule in messages.
	// +optional
	Name string `json:"name,omitempty"`
	// Expression in CEL over "object", true for a ready one: object.status.phase == "Bound".
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
	// Condition is the type of a status condition that has to be True.
	// +optional
	Condition string `json:"condition,omitempty"`
	// Message tells people what is missing while the rule does not hold.
	// +optional
	Message string `json:"message,omitempty"`
}

// Selects says whether the selector means an object.
func (s ResourceSelector) Selects(apiVersion, kind, namespace, name string) bool {
	return (s.APIVersion == "" || s.APIVersion == apiVersion) && (s.Kind == "" || s.Kind == kind) &&
		(s.Namespace == "" || s.Namespace == namespace) && (s.Name == "" || s.Name == name)
}

// KustomizeOptions select what Kustomize builds.
type KustomizeOptions struct {
	// Dir is the folder, relative to the bundle, that holds kustomization.yaml.
	// +nullable
	// +optional
	Dir string `json:"dir,omitempty"`
}

// HelmOptions say where a chart comes from, with which values, and how it is installed.
type HelmOptions struct {
	// Chart is a chart name in Repo, a path in the bundle, or a URL.
	// +nullable
	// +optional
	Chart string `json:"chart,omitempty"`

	// Repo is the URL of a Helm repository or an OCI registry.
	// +nullable
	// +optional
	Repo string `json:"repo,omitempty"`

	// ReleaseName overrides the name made from the bundle's.
	// +nullable
	// +optional
	// +kubebuilder:validation:MaxLength=53
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ReleaseName string `json:"releaseName,omitempty"`

	// Version is a version or a semver constraint; empty means the newest.
	// +nullable
	// +optional
	Version string `json:"version,omitempty"`

	// TimeoutSeconds waits that long for readiness; 0 does not wait.
	// +optional
	TimeoutSeconds int `json:"timeoutSeconds,omitempty"`

	// Values for the chart.
	// +nullable
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *GenericMap `json:"values,omitempty"`

	// TemplateValues are ${ } templates, a top-level key each, that yield YAML.
	// +nullable
	// +optional
	TemplateValues map[string]string `json:"templateValues,omitempty"`

	// ValuesFrom are read on the member and merged last.
	// +nullable
	// +optional
	ValuesFrom []ValuesFrom `json:"valuesFrom,omitempty"`

	// Force replaces objects that cannot be changed in place.
	// +optional
	Force bool `json:"force,omitempty"`

	// TakeOwnership adopts objects that exist without an owner.
	// +optional
	TakeOwnership bool `json:"takeOwnership,omitempty"`

	// MaxHistory bounds the kept revisions; 0 means 2.
	// +optional
	MaxHistory int `json:"maxHistory,omitempty"`

	// ValuesFiles are merged over Values when the bundle is read.
	// +nullable
	// +optional
	ValuesFiles []string `json:"valuesFiles,omitempty"`

	// WaitForJobs includes Jobs in the wait of TimeoutSeconds.
	// +optional
	WaitForJobs bool `json:"waitForJobs,omitempty"`

	// Atomic rolls back when an install or upgrade fails.
	// +optional
	Atomic bool `json:"atomic,omitempty"`

	// DisablePreProcess leaves ${ } templates as they are.
	// +optional
	DisablePreProcess bool `json:"disablePreProcess,omitempty"`

	// DisableDNS makes the chart's getHostByName return nothing.
	// +optional
	DisableDNS bool `json:"disableDNS,omitempty"`

	// SkipSchemaValidation ignores values.schema.json.
	// +optional
	SkipSchemaValidation bool `json:"skipSchemaValidation,omitempty"`

	// DisableDependencyUpdate ships the chart with the dependencies it has.
	// +optional
	DisableDependencyUpdate bool `json:"disableDependencyUpdate,omitempty"`
}

// ValuesFrom names one ConfigMap key, one Secret key, or both.
type ValuesFrom struct {
	// +nullable
	// +optional
	ConfigMapKeyRef *ConfigMapKeySelector `json:"configMapKeyRef,omitempty"`
	// +nullable
	// +optional
	SecretKeyRef *SecretKeySelector `json:"secretKeyRef,omitempty"`
}

// LocalObjectReference names an object in a namespace known from elsewhere.
type LocalObjectReference struct {
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`
}

// ConfigMapKeySelector names a key of a ConfigMap on the member.
type ConfigMapKeySelector struct {
	LocalObjectReference `json:",inline"`
	// Namespace defaults to the release's.
	// +nullable
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Key defaults to values.yaml.
	// +nullable
	// +optional
	Key string `json:"key,omitempty"`
}

// SecretKeySelector names a key of a Secret on the member.
type SecretKeySelector struct {
	LocalObjectReference `json:",inline"`
	// Namespace defaults to the release's.
	// +nullable
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Key defaults to values.yaml.
	// +nullable
	// +optional
	Key string `json:"key,omitempty"`
}

// YAMLOptions apply to bundles of plain manifests.
type YAMLOptions struct {
	// Overlays are names of folders below overlays/, applied in this order.
	// +nullable
	// +optional
	Overlays []string `json:"overlays,omitempty"`
}

// DiffOptions list exceptions from the comparison with live objects.
type DiffOptions struct {
	// +nullable
	// +optional
	ComparePatches []ComparePatch `json:"comparePatches,omitempty"`
}

// ComparePatch takes parts of matching objects out of the comparison.
type ComparePatch struct {
	// +nullable
	// +optional
	Kind string `json:"kind,omitempty"`
	// +nullable
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// +nullable
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`
	// Operations are applied to the object before it is compared.
	// +nullable
	// +optional
	Operations []Operation `json:"operations,omitempty"`
	// JsonPointers (RFC 6901) are removed before comparing.
	// +nullable
	// +optional
	JsonPointers []string `json:"jsonPointers,omitempty"`
}

// Operation is a JSON patch operation (RFC 6902) or the word "ignore".
type Operation struct {
	// +nullable
	// +optional
	Op string `json:"op,omitempty"`
	// +nullable
	// +optional
	Path string `json:"path,omitempty"`
	// +nullable
	// +optional
	Value string `json:"value,omitempty"`
}

// IgnoreOptions name status conditions that do not count for readiness.
type IgnoreOptions struct {
	// Conditions are left out when all keys and values of an entry match.
	// +nullable
	// +optional
	Conditions []map[string]string `json:"conditions,omitempty"`
}

// CorrectDrift says whether and how changed objects are restored.
type CorrectDrift struct {
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Force replaces objects that cannot be changed in place.
	// +optional
	Force bool `json:"force,omitempty"`
	// KeepFailHistory keeps the release record of a failed correction.
	// +optional
	KeepFailHistory bool `json:"keepFailHistory,omitempty"`
}

// DownstreamResource names a Secret or ConfigMap in the bundle's namespace.
type DownstreamResource struct {
	// +optional
	Kind string `json:"kind,omitempty"`
	// +optional
	Name string `json:"name,omitempty"`
}

// OverwrittenResource is an object that moved here from another bundle.
type OverwrittenResource struct {
	// +optional
	Kind string `json:"kind,omitempty"`
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
}
