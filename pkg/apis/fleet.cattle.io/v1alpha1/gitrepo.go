package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GitRepo follows a branch, tag or commit of a git repository and deploys what it finds there.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=fleet,path=gitrepos
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Repo",type=string,JSONPath=`.spec.repo`
// +kubebuilder:printcolumn:name="Commit",type=string,JSONPath=`.status.commit`
// +kubebuilder:printcolumn:name="BundleDeployments-Ready",type=string,JSONPath=`.status.display.readyBundleDeployments`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type GitRepo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   GitRepoSpec   `json:"spec,omitempty"`
	Status GitRepoStatus `json:"status,omitempty"`
}

// GitRepoList is a list of GitRepos.
//
// +kubebuilder:object:root=true
type GitRepoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitRepo `json:"items"`
}

// GitRepoSpec says what to follow and where to deploy it.
type GitRepoSpec struct {
	// Repo is the clone URL: http(s), ssh, or scp-like.
	// +kubebuilder:validation:MinLength=1
	Repo string `json:"repo"`

	// Branch to follow; empty means master.
	// +nullable
	// +optional
	Branch string `json:"branch,omitempty"`

	// Revision is a tag or commit; it wins over Branch and takes webhooks out of play.
	// +nullable
	// +optional
	Revision string `json:"revision,omitempty"`

	// TargetNamespace forces every object of the repository into one namespace.
	// +nullable
	// +optional
	TargetNamespace string `json:"targetNamespace,omitempty"`

	// ClientSecretName holds the git credentials; without it a Secret named gitcredential is used if it exists.
	// +nullable
	// +optional
	ClientSecretName string `json:"clientSecretName,omitempty"`

	// HelmSecretName holds the credentials for charts of all paths.
	// +nullable
	// +optional
	HelmSecretName string `json:"helmSecretName,omitempty"`

	// HelmSecretNameForPaths holds credentials for charts by path.
	// +nullable
	// +optional
	HelmSecretNameForPaths string `json:"helmSecretNameForPaths,omitempty"`

	// HelmRepoURLRegex says which chart URLs may receive the credentials; empty means none.
	// +nullable
	// +optional
	HelmRepoURLRegex string `json:"helmRepoURLRegex,omitempty"`

	// CABundle is a PEM bundle trusted for the git server.
	// +nullable
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`

	// InsecureSkipTLSVerify turns certificate checks off.
	// +optional
	InsecureSkipTLSVerify bool `json:"insecureSkipTLSVerify,omitempty"`

	// Paths are folders or globs that are searched for bundles; empty means the whole repository.
	// +nullable
	// +optional
	Paths []string `json:"paths,omitempty"`

	// Bundles lists the folders that are bundles, instead of searching Paths.
	// +nullable
	// +optional
	Bundles []BundlePath `json:"bundles,omitempty"`

	// Paused only stages what is found.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// ServiceAccount on the members that reads and writes for the bundles.
	// +nullable
	// +optional
	ServiceAccount string `json:"serviceAccount,omitempty"`

	// Targets are the clusters to deploy to; empty means the cluster group default.
	// +optional
	Targets []ClusterTarget `json:"targets,omitempty"`

	// PollingInterval between two looks at the repository; nil or 0 means 15 seconds.
	// +nullable
	// +optional
	PollingInterval *Duration `json:"pollingInterval,omitempty"`

	// DisablePolling looks only when the spec changes or a webhook arrives.
	// +optional
	DisablePolling bool `json:"disablePolling,omitempty"`

	// ForceSyncGeneration reads the repository again and redeploys when it is raised.
	// +optional
	ForceSyncGeneration int64 `json:"forceSyncGeneration,omitempty"`

	// ImageScanInterval is the period of image commits.
	// +optional
	ImageScanInterval *Duration `json:"imageScanInterval,omitempty"`

	// ImageScanCommit is the author and message of image commits.
	// +optional
	ImageScanCommit *CommitSpec `json:"imageScanCommit,omitempty"`

	// KeepResources leaves the objects on the members when the GitRepo goes.
	// +optional
	KeepResources bool `json:"keepResources,omitempty"`

	// DeleteNamespace removes the release namespaces when the GitRepo goes.
	// +optional
	DeleteNamespace bool `json:"deleteNamespace,omitempty"`

	// CorrectDrift restores objects that were changed on a member.
	// +optional
	CorrectDrift *CorrectDrift `json:"correctDrift,omitempty"`

	// OCIRegistrySecret names the registry that stores bundle contents.
	// +optional
	OCIRegistrySecret string `json:"ociRegistrySecret,omitempty"`

	// WebhookSecret holds the secrets of webhooks for this repository.
	// +optional
	WebhookSecret string `json:"webhookSecret,omitempty"`

	// Validate lets the hub render bundles before it sends them: a cluster for which a bundle does not render
	// keeps what it has. Unset means what the hub is set to (our addition).
	// +optional
	Validate *bool `json:"validate,omitempty"`

	// Merge lets the bundles of the repository be delivered together: with PerRepo, all for one cluster in one
	// BundleDeployment where the cluster's agent understands it (our addition).
	// +optional
	Merge *MergeOptions `json:"merge,omitempty"`
}

// BundlePath is a folder that is a bundle.
type BundlePath struct {
	// Base is the folder, relative to the repository.
	// +nullable
	// +optional
	Base string `json:"base,omitempty"`
	// Options is the file that takes the place of fleet.yaml, relative to Base.
	// +nullable
	// +optional
	Options string `json:"options,omitempty"`
}

// CommitSpec is the author and message of commits the engine makes.
type CommitSpec struct {
	// +nullable
	// +optional
	AuthorName string `json:"authorName,omitempty"`
	// +nullable
	// +optional
	AuthorEmail string `json:"authorEmail,omitempty"`
	// +nullable
	// +optional
	MessageTemplate string `json:"messageTemplate,omitempty"`
}

// GitRepoStatus says what was seen, what was applied, and how its deployments do.
type GitRepoStatus struct {
	// ObservedGeneration is the spec's generation this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration"`
	// UpdateGeneration is the last forceSyncGeneration that was carried out.
	// +optional
	UpdateGeneration int64 `json:"updateGeneration,omitempty"`
	// Commit is the last commit whose bundles are stored.
	// +optional
	Commit string `json:"commit,omitempty"`
	// WebhookCommit is the last commit a webhook announced.
	// +optional
	WebhookCommit string `json:"webhookCommit,omitempty"`
	// LastWebhookTime is when it was announced.
	// +optional
	LastWebhookTime metav1.Time `json:"lastWebhookTime,omitempty,omitzero"`
	// PollingCommit is the last commit that was seen in the repository.
	// +optional
	PollingCommit string `json:"pollingCommit,omitempty"`
	// LastPollingTime (on the wire: lastPollingTriggered) is when a look last brought something new.
	// +optional
	LastPollingTime metav1.Time `json:"lastPollingTriggered,omitempty,omitzero"`
	// GitJobStatus is Current, InProgress or Failed.
	// +optional
	GitJobStatus string `json:"gitJobStatus,omitempty"`
	// LastSyncedImageScanTime is when an image commit was last made.
	// +optional
	LastSyncedImageScanTime metav1.Time `json:"lastSyncedImageScanTime,omitempty,omitzero"`

	StatusBase `json:",inline"`
}
