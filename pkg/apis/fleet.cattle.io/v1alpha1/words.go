package v1alpha1

// Labels and annotations of the API. A key with the group's prefix is reserved: user input (fleet.yaml,
// registering agents) may not set it.
const (
	// ReservedPrefix starts every label and annotation key that only the engine may write.
	ReservedPrefix = "fleet.cattle.io/"

	// RepoLabel names the owning GitRepo on Bundles, BundleDeployments and values Secrets.
	RepoLabel = "fleet.cattle.io/repo-name"
	// CommitLabel is the commit a Bundle or BundleDeployment was built from.
	CommitLabel = "fleet.cattle.io/commit"
	// BundleLabel and BundleNamespaceLabel lead from a BundleDeployment back to its Bundle.
	BundleLabel          = "fleet.cattle.io/bundle-name"
	BundleNamespaceLabel = "fleet.cattle.io/bundle-namespace"
	// HelmOpLabel names the owning HelmOp.
	HelmOpLabel = "fleet.cattle.io/fleet-helm-name"
	// ClusterLabel and ClusterNamespaceLabel name the destination of a BundleDeployment.
	ClusterLabel          = "fleet.cattle.io/cluster"
	ClusterNamespaceLabel = "fleet.cattle.io/cluster-namespace"
	// ManagedLabel marks what the engine made and may remove; its value is "true".
	ManagedLabel = "fleet.cattle.io/managed"
	// ContentLabel names the Content object a BundleDeployment refers to.
	ContentLabel = "fleet.cattle.io/content-name"
	// MergedLabel on a merged BundleDeployment names the repository whose bundles it delivers.
	MergedLabel = "fleet.cattle.io/merged"
	// ChunkOfLabel on a Content names the one it is a chunk of (our addition).
	ChunkOfLabel = "fleet.cattle.io/chunk-of"
	// ChunksAnnotation on a Content says how many chunks it has (our addition).
	ChunksAnnotation = "fleet.cattle.io/chunks"
	// NeededAnnotation on stored contents is when somebody last relied on them, so that they are not
	// collected before their first user is there (our addition).
	NeededAnnotation = "fleet.cattle.io/needed-at"
	// InternalSecretLabel hides a Secret from pickers.
	InternalSecretLabel = "fleet.cattle.io/bundle-internal-secret"
	// RegistrationTokenLabel on a ClusterRegistration names the token that was used.
	RegistrationTokenLabel = "fleet.cattle.io/registration-token"
	// ClusterManagementLabel tells registration to leave the object to somebody else.
	ClusterManagementLabel = "fleet.cattle.io/cluster-management"
	// ShardLabel selects the controller shard that processes the object.
	ShardLabel = "fleet.cattle.io/shard-ref"
	// CreatedByUserLabel is set by Rancher on a GitRepo and copied down.
	CreatedByUserLabel = "fleet.cattle.io/created-by-user-id"
	// AgentPodLabel names the pod that registered a cluster; agents may send it although it is reserved.
	AgentPodLabel = "fleet.cattle.io/created-by-agent-pod"
	// DownstreamCopyLabel marks Secrets and ConfigMaps copied to a member with their BundleDeployment.
	DownstreamCopyLabel = "fleet.cattle.io/bundledeployment"
	// DisplayNameLabel is an alternative name matched by clusterName.
	DisplayNameLabel = "management.cattle.io/cluster-display-name"
	// ManagementNameLabel must exist on every Cluster for Rancher's pages to render.
	ManagementNameLabel = "management.cattle.io/cluster-name"

	// ClusterAnnotation and ClusterNamespaceAnnotation lead from a cluster's namespace to its Cluster.
	ClusterAnnotation          = "fleet.cattle.io/cluster"
	ClusterNamespaceAnnotation = "fleet.cattle.io/cluster-namespace"

	// ConfirmDeletesAnnotation on a Bundle lets through deletions that wait for a person; its value is the
	// token the Ready condition names (our addition).
	ConfirmDeletesAnnotation = "fleet.cattle.io/confirm-deletes"

	// HoldAnnotation "true" on a Bundle is a person's wish to keep it paused: whoever writes the Bundle from
	// its source leaves spec.paused alone while it is there.
	HoldAnnotation = "fleet.cattle.io/hold"
	// AcceptedFailuresAnnotation on a Bundle, "generation:count", lets a halted rollout of that generation go
	// on as long as no more than count clusters fail.
	AcceptedFailuresAnnotation = "fleet.cattle.io/accepted-failures"
	// ReleasedAnnotation on a BundleDeployment is when its agent was told the deployment id, where the
	// rollout looks at time.
	ReleasedAnnotation = "fleet.cattle.io/released"

	// SetHashLabel and SetIDAnnotation mark every object an agent applied with the set it belongs to.
	SetHashLabel    = "objectset.rio.cattle.io/hash"
	SetIDAnnotation = "objectset.rio.cattle.io/id"

	// ApplyAnnotation is on objects in the record of a release, and says how they are written where that is
	// not as usual: ApplyOptions in JSON. It is taken off before an object is sent (our addition).
	ApplyAnnotation = "fleet.cattle.io/apply"

	// Annotations kept in a release's chart metadata on the member.
	ReleaseBundleIDAnnotation       = "fleet.cattle.io/bundle-id"
	ReleaseCommitAnnotation         = "fleet.cattle.io/commit"
	ReleaseAgentNamespaceAnnotation = "fleet.cattle.io/agent-namespace"
	ReleaseServiceAccountAnnotation = "fleet.cattle.io/service-account"
	ReleaseKeepResourcesAnnotation  = "fleet.cattle.io/keep-resources"
)

// Finalizers, one a kind.
const (
	GitRepoFinalizer          = "fleet.cattle.io/gitrepo-finalizer"
	HelmOpFinalizer           = "fleet.cattle.io/helmop-finalizer"
	BundleFinalizer           = "fleet.cattle.io/bundle-finalizer"
	BundleDeploymentFinalizer = "fleet.cattle.io/bundle-deployment-finalizer"
	ClusterFinalizer          = "fleet.cattle.io/cluster-finalizer"
	ScheduleFinalizer         = "fleet.cattle.io/schedule-finalizer"
)

// Secret types.
const (
	// BundleValuesSecretType holds the Helm values of a Bundle, by target name.
	BundleValuesSecretType = "fleet.cattle.io/bundle-values/v1alpha1"
	// DeploymentValuesSecretType holds the Helm values of one BundleDeployment.
	DeploymentValuesSecretType = "fleet.cattle.io/bundle-deployment/v1alpha1"
	// RegistrationValuesSecretType holds the agent chart's values for a registration token.
	RegistrationValuesSecretType = "fleet.cattle.io/cluster-registration-values"
	// AgentCredentialSecretType hands a service-account identity to an upstream agent.
	AgentCredentialSecretType = "fleet.cattle.io/agent-credential"
	// OCIStorageSecretType holds access to a registry that stores bundle contents.
	OCIStorageSecretType = "fleet.cattle.io/bundle-oci-storage/v1alpha1"
)

// Condition types.
const (
	ConditionReady       = "Ready"
	ConditionAccepted    = "Accepted"
	ConditionGitPolling  = "GitPolling"
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
	ConditionInstalled   = "Installed"
	ConditionDeployed    = "Deployed"
	ConditionMonitored   = "Monitored"
	ConditionProcessed   = "Processed"
	ConditionImported    = "Imported"
	// ConditionApplied, ConditionProgressing and ConditionDegraded on a BundleDeployment tell apart whether its
	// objects are written, whether something is under way and whether something is broken (our additions).
	ConditionApplied     = "Applied"
	ConditionProgressing = "Progressing"
	ConditionDegraded    = "Degraded"
	// ConditionAvailable on a Cluster says whether its agent is heard from, on a BundleDeployment whether its
	// objects run (our addition).
	ConditionAvailable = "Available"
	// ConditionHubAccepted and ConditionJoined on a Cluster tell how far registration went (our additions).
	ConditionHubAccepted = "HubAccepted"
	ConditionJoined      = "Joined"
	// ConditionSourceWarnings on a GitRepo is True while the last read of the source left warnings (our addition).
	ConditionSourceWarnings = "SourceWarnings"
	// ConditionMerged on a Bundle that is to be merged says whether it is, everywhere.
	ConditionMerged = "Merged"
)

// ReasonError is the reason of a condition that reports a failure.
const ReasonError = "Error"

// ReasonContentsMissing is the reason of a Bundle's Ready condition when the files that it names are neither
// on the hub nor can their registry be found.
const ReasonContentsMissing = "ContentsMissing"

// ReasonWaitingForValues is the reason by which an agent says that the values Secret of a
// BundleDeployment is not there or belongs to another version; the hub then writes it again.
const ReasonWaitingForValues = "WaitingForValues"

// BundleState is the state of one BundleDeployment, and by rank of everything rolled up from it.
type BundleState string

// The states, best first.
const (
	Ready       BundleState = "Ready"
	NotReady    BundleState = "NotReady"
	Pending     BundleState = "Pending"
	OutOfSync   BundleState = "OutOfSync"
	Modified    BundleState = "Modified"
	WaitApplied BundleState = "WaitApplied"
	ErrApplied  BundleState = "ErrApplied"
)

// Rank orders states by how bad they are, 1 (Ready) to 7 (ErrApplied); an unknown state ranks 0.
func (s BundleState) Rank() int {
	switch s {
	case Ready:
		return 1
	case NotReady:
		return 2
	case Pending:
		return 3
	case OutOfSync:
		return 4
	case Modified:
		return 5
	case WaitApplied:
		return 6
	case ErrApplied:
		return 7
	}
	return 0
}
