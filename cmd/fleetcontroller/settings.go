package main

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// settings are the flags; the variables of the chart give their defaults.
type settings struct {
	kubeconfig string
	namespace  string

	metricsAddress string
	disableMetrics bool
	objectMetrics  bool
	healthAddress  string
	pprofAddress   string

	disableGitops   bool
	webhookAddress  string
	unsignedWebhook bool
	cacheDir        string
	skipHostKeys    bool
	// registries lets sources keep the contents of their bundles in OCI registries.
	registries bool
	// unusedContents is how long contents are kept that nobody refers to.
	unusedContents time.Duration

	requireTokenTTL      bool
	refuseServiceAccount bool

	validateBundles bool

	leaderElect bool
	// shardID is the label value of the objects this process is for, automaticShards how many shards the
	// replicas share among them in place of electing a leader.
	shardID         string
	automaticShards int
	leaseDuration   time.Duration
	renewDeadline   time.Duration
	retryPeriod     time.Duration

	gitRepoWorkers int
	bundleWorkers  int
	clusterWorkers int

	debug      bool
	debugLevel int
}

func defaults(env func(string) string) *settings {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return &settings{
		kubeconfig:     env("KUBECONFIG"),
		namespace:      orText(env("NAMESPACE"), "cattle-fleet-system"),
		cacheDir:       filepath.Join(cache, "fleet-controller"),
		registries:     orBool(env("OCI_STORAGE"), true),
		leaderElect:    true,
		leaseDuration:  orDuration(env("CATTLE_ELECTION_LEASE_DURATION"), 15*time.Second),
		renewDeadline:  orDuration(env("CATTLE_ELECTION_RENEW_DEADLINE"), 10*time.Second),
		retryPeriod:    orDuration(env("CATTLE_ELECTION_RETRY_PERIOD"), 2*time.Second),
		gitRepoWorkers: orNumber(env("GITREPO_RECONCILER_WORKERS"), 50),
		bundleWorkers:  orNumber(env("BUNDLE_RECONCILER_WORKERS"), 50),
		clusterWorkers: orNumber(env("CLUSTER_RECONCILER_WORKERS"), 16),
	}
}

func (s *settings) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.kubeconfig, "kubeconfig", s.kubeconfig, "kubeconfig of the hub; empty means the pod's service account")
	flags.StringVar(&s.namespace, "namespace", s.namespace, "namespace of the hub's own objects")
	flags.StringVar(&s.metricsAddress, "metrics-bind-address", ":8081", "where metrics are served")
	flags.BoolVar(&s.disableMetrics, "disable-metrics", false, "serve no metrics")
	flags.BoolVar(&s.objectMetrics, "object-metrics", true, "tell the numbers of every GitRepo, Bundle, Cluster and ClusterGroup as metrics")
	flags.StringVar(&s.healthAddress, "health-probe-bind-address", ":8082", "where /healthz and /readyz are served; 0 for nowhere")
	flags.StringVar(&s.pprofAddress, "pprof-bind-address", "0", "where profiles are served; 0 for nowhere")
	flags.BoolVar(&s.disableGitops, "disable-gitops", false, "leave GitRepos to another process")
	flags.StringVar(&s.webhookAddress, "listen", ":8080", "where webhooks are received; 0 for nowhere")
	flags.BoolVar(&s.unsignedWebhook, "allow-unsigned-webhooks", false, "accept webhooks for which no secret is set; they can only cause a look at the repository")
	flags.StringVar(&s.cacheDir, "cache-dir", s.cacheDir, "folder for git mirrors and charts")
	flags.BoolVar(&s.skipHostKeys, "insecure-skip-host-key-checks", false, "accept SSH hosts that nobody vouches for")
	flags.BoolVar(&s.registries, "oci-storage", s.registries, "keep bundle contents in the registry of ociRegistrySecret or of a Secret named ocistorage")
	flags.DurationVar(&s.unusedContents, "keep-unused-contents", 2*time.Minute, "how long contents on the hub are kept that nobody refers to; what refers to them may be on its way")
	flags.BoolVar(&s.requireTokenTTL, "require-token-ttl", false, "delete registration tokens that never expire")
	flags.BoolVar(&s.refuseServiceAccount, "refuse-service-account-agents", false, "let only agents join that ask for a certificate")
	flags.BoolVar(&s.validateBundles, "validate-bundles", true, "render bundles before they are sent, unless they or their GitRepo say otherwise; a cluster for which one does not render keeps what it has")
	flags.BoolVar(&s.leaderElect, "leader-elect", s.leaderElect, "work only while holding the lease")
	flags.StringVar(&s.shardID, "shard-id", s.shardID, "work only on objects with this value of the label fleet.cattle.io/shard-ref; empty means those without it")
	flags.IntVar(&s.automaticShards, "automatic-shards", s.automaticShards, "split the work into so many shards that all replicas share, in place of electing a leader; 0 means a leader")
	flags.IntVar(&s.gitRepoWorkers, "gitrepo-workers", s.gitRepoWorkers, "GitRepos worked on at a time")
	flags.IntVar(&s.bundleWorkers, "bundle-workers", s.bundleWorkers, "Bundles worked on at a time")
	flags.IntVar(&s.clusterWorkers, "cluster-workers", s.clusterWorkers, "Clusters worked on at a time")
	flags.BoolVar(&s.debug, "debug", false, "log more")
	flags.IntVar(&s.debugLevel, "debug-level", 0, "how much more")
}

func orText(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

func orDuration(text string, fallback time.Duration) time.Duration {
	duration, err := time.ParseDuration(text)
	if err != nil || duration <= 0 {
		return fallback
	}
	return duration
}

func orBool(text string, fallback bool) bool {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return fallback
	}
	return on
}

func orNumber(text string, fallback int) int {
	number, err := strconv.Atoi(text)
	if err != nil || number <= 0 {
		return fallback
	}
	return number
}
