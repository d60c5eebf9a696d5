package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	bundlecontroller "github.com/fairlead-dev/fairlead/pkg/bundle/controller"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fetch"
	"github.com/fairlead-dev/fairlead/pkg/bundle/judge/apart"
	clustercontroller "github.com/fairlead-dev/fairlead/pkg/cluster/controller"
	"github.com/fairlead-dev/fairlead/pkg/cluster/join"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/content/store"
	gitcontroller "github.com/fairlead-dev/fairlead/pkg/gitjob/controller"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/webhook"
	"github.com/fairlead-dev/fairlead/pkg/merge/carrier"
	"github.com/fairlead-dev/fairlead/pkg/merge/view"
	"github.com/fairlead-dev/fairlead/pkg/shard"
	"github.com/fairlead-dev/fairlead/pkg/status/compact"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
	"github.com/fairlead-dev/fairlead/pkg/status/gauges"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
	"github.com/fairlead-dev/fairlead/pkg/telemetry"
)

// hub is the manager with everything that runs in it.
type hub struct {
	manager.Manager
	settings *settings
	config   hubConfig
	git      *git.Service
	feed     *feed.Feed
	keeper   *store.Keeper
	caches   *confirm.Informers
	shards   *shard.Shards
}

// hubConfig is the part of the ConfigMap fleet-controller that is read here.
type hubConfig struct {
	GitClientTimeout string `json:"gitClientTimeout"`
}

func newHub(ctx context.Context, settings *settings) (*hub, error) {
	ctrl.SetLogger(logger(settings))
	klog.SetLogger(ctrl.Log)
	config, err := restConfig(settings.kubeconfig)
	if err != nil {
		return nil, err
	}
	h := &hub{settings: settings}
	config.Wrap(shard.Fence)
	options := managerOptions(settings)
	holder, err := h.split(config, &options)
	if err != nil {
		return nil, err
	}
	h.caches = confirm.NewInformers(h.lookup, confirm.KindOf(options.Scheme), time.Now)
	options.Cache.NewInformer = h.informer
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("start the manager: %w", err)
	}
	h.Manager = mgr
	if err := mgr.Add(holder); err != nil {
		return nil, err
	}
	h.keeper = &store.Keeper{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Now: time.Now,
		Registry: registry.Client{Proxy: http.ProxyFromEnvironment}, Disabled: !settings.registries,
	}
	if h.feed, err = feed.New(mgr.GetCache(), ctrlmetrics.Registry, time.Now); err != nil {
		return nil, err
	}
	if err := mgr.Add(h.feed); err != nil {
		return nil, err
	}
	if err := h.readConfig(ctx); err != nil {
		return nil, err
	}
	steps := []func() error{h.addMetrics, h.addClusters, h.addBundles, h.addProbes}
	if !settings.disableGitops {
		steps = append(steps, h.addGitRepos)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// split decides how work is shared with other replicas: a leader does it all, they share it, or there are none.
func (h *hub) split(config *rest.Config, options *ctrl.Options) (manager.Runnable, error) {
	s := h.settings
	timing := shard.Timing{Lease: s.leaseDuration, Deadline: s.renewDeadline, Retry: s.retryPeriod}
	log, suffix := ctrl.Log.WithName("shard"), ""
	if s.shardID != "" {
		suffix = "-" + s.shardID
	}
	if s.automaticShards > 0 {
		h.shards = shard.New(s.automaticShards, s.shardID, log)
		return shard.NewMembers(config, s.namespace, "fleet-controller-shards"+suffix, timing, h.shards, time.Now)
	}
	h.shards = shard.New(1, s.shardID, log)
	if !s.leaderElect {
		return shard.Alone(h.shards), nil
	}
	leader, lock, err := shard.NewLeader(config, s.namespace, "fleet-controller-leader-election-shard"+suffix, timing, h.shards, time.Now)
	if err != nil {
		return nil, err
	}
	options.LeaderElectionResourceLockInterface = lock
	// The next leader has its caches filled and its queues ready.
	options.Controller.EnableWarmup = ptr.To(true)
	return leader, nil
}

// informer makes the informers of caches: they believe no list that lacks what exists, and see deployments
// whatever carries them.
func (h *hub) informer(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	if _, ok := example.(*fleet.BundleDeployment); ok {
		shared := &compact.Deployments{}
		from = view.New(from, func(deployment *fleet.BundleDeployment) {
			tally.Bound(deployment)
			shared.Compact(deployment)
		})
	}
	return h.caches.New(from, example, resync, indexers)
}

// lookup reads the metadata of an object from the API server, for caches that doubt a list.
func (h *hub) lookup(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*metav1.ObjectMeta, error) {
	if kind == fleet.GroupVersion.WithKind("BundleDeployment") {
		deployment, err := carrier.Find(ctx, h.GetAPIReader(), key)
		if err != nil {
			return nil, err
		}
		return &deployment.ObjectMeta, nil
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	err := h.GetAPIReader().Get(ctx, key, object)
	return &object.ObjectMeta, err
}

// restConfig returns the hub's address and identity. The API server decides how fast is too fast, by
// priority and fairness, not the client.
func restConfig(kubeconfig string) (*rest.Config, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the hub: %w", err)
	}
	config.QPS = -1
	config.UserAgent = "fleet-controller"
	return config, nil
}

func managerOptions(settings *settings) ctrl.Options {
	metricsAddress := settings.metricsAddress
	if settings.disableMetrics {
		metricsAddress = "0"
	}
	return ctrl.Options{
		Scheme:                        scheme(),
		Metrics:                       metricsserver.Options{BindAddress: metricsAddress},
		HealthProbeBindAddress:        settings.healthAddress,
		PprofBindAddress:              settings.pprofAddress,
		LeaderElection:                settings.leaderElect && settings.automaticShards == 0,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &settings.leaseDuration,
		RenewDeadline:                 &settings.renewDeadline,
		RetryPeriod:                   &settings.retryPeriod,
		Cache:                         cacheOptions(),
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &fleet.Content{}},
		}},
	}
}

func scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, fleet.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // two kinds of one name in this program
		}
	}
	return scheme
}

// cacheOptions keep what takes much memory and is not needed out of caches: contents of bundles, and what
// agents and holders of tokens send beyond what is decided by.
func cacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&fleet.Bundle{}: {Transform: func(object any) (any, error) {
				if bundle, ok := object.(*fleet.Bundle); ok {
					return bundle, content.Trim(bundle)
				}
				return object, nil
			}},
			&fleet.ClusterRegistration{}: {Transform: func(object any) (any, error) {
				if registration, ok := object.(*fleet.ClusterRegistration); ok {
					join.Trim(registration)
				}
				return object, nil
			}},
		},
	}
}

func (h *hub) run(ctx context.Context) error {
	if h.git != nil {
		defer func() { _ = h.git.Close() }()
	}
	return h.Start(ctx)
}

func (h *hub) readConfig(ctx context.Context) error {
	var stored corev1.ConfigMap
	err := h.GetAPIReader().Get(ctx, types.NamespacedName{Namespace: h.settings.namespace, Name: "fleet-controller"}, &stored)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %s/fleet-controller: %w", h.settings.namespace, err)
	}
	if text := stored.Data["config"]; text != "" {
		if err := json.Unmarshal([]byte(text), &h.config); err != nil {
			return fmt.Errorf("read ConfigMap %s/fleet-controller, key config: %w", h.settings.namespace, err)
		}
	}
	return nil
}

func (h *hub) addClusters() error {
	shown, err := clustercontroller.NewMetrics(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("register metrics of clusters: %w", err)
	}
	return clustercontroller.Register(h, clustercontroller.Options{
		SystemNamespace:            h.settings.namespace,
		Rollups:                    h.feed,
		Metrics:                    shown,
		Caches:                     h.caches,
		Shards:                     h.shards,
		Workers:                    h.settings.clusterWorkers,
		RequireTokenTTL:            h.settings.requireTokenTTL,
		RefuseServiceAccountAgents: h.settings.refuseServiceAccount,
	})
}

func (h *hub) addBundles() error {
	shown, err := bundlecontroller.NewMetrics(ctrlmetrics.Registry)
	if err != nil {
		return fmt.Errorf("register metrics of bundles: %w", err)
	}
	renderer := apart.New(apart.Options{Command: renderCommand, Log: h.GetLogger().WithName("validation")})
	if err := h.Add(renderer); err != nil {
		return fmt.Errorf("add the rendering of bundles: %w", err)
	}
	deployments, err := carrier.Brief(h.GetClient(), h.GetConfig(), h.GetHTTPClient())
	if err != nil {
		return err
	}
	reconciler := &bundlecontroller.Reconciler{
		Client:      h.GetClient(),
		Reader:      h.GetAPIReader(),
		Rollups:     h.feed,
		Deployments: carrier.New(deployments, h.GetAPIReader()),
		Keeper:      h.keeper,
		Events:      h.GetEventRecorder("fleet-controller"),
		Validate:    h.settings.validateBundles,
		Render:      renderer.Judge,
		Metrics:     shown,
		Caches:      h.caches,
		Shards:      h.shards,
		Now:         time.Now,

		UnusedContents: h.settings.unusedContents,
	}
	return reconciler.Register(h, h.feed.Source(tally.KindBundle), h.settings.bundleWorkers)
}

func (h *hub) addGitRepos() error {
	service, err := git.New(git.Options{Dir: h.settings.cacheDir, Timeout: orDuration(h.config.GitClientTimeout, 0)})
	if err != nil {
		return fmt.Errorf("prepare git mirrors: %w", err)
	}
	h.git = service
	reconciler := &gitcontroller.Reconciler{
		Client:   h.GetClient(),
		Reader:   h.GetAPIReader(),
		Git:      service,
		Fetcher:  fetch.New(fetch.Options{Dir: filepath.Join(h.settings.cacheDir, "charts"), Proxy: http.ProxyFromEnvironment}),
		Keeper:   h.keeper,
		Rollups:  h.feed,
		Events:   h.GetEventRecorder("fleet-controller"),
		HostKeys: h.hostKeys,
		Shards:   h.shards,
		Now:      time.Now,
		Jitter:   rand.Float64,
	}
	if err := reconciler.Register(h, h.feed.Source(tally.KindGitRepo), h.settings.gitRepoWorkers); err != nil {
		return err
	}
	return h.addWebhook()
}

func (h *hub) addWebhook() error {
	announcements := gitcontroller.Announcements{
		Client: h.GetClient(), Reader: h.GetAPIReader(), SystemNamespace: h.settings.namespace, Now: time.Now,
	}
	receiver := webhook.NewReceiver(announcements, announcements, announcements)
	receiver.AllowUnsigned = h.settings.unsignedWebhook
	receiver.Report = func(_ context.Context, err error) {
		h.GetLogger().Error(err, "webhook not passed on")
	}
	return h.serve(h.settings.webhookAddress, receiver)
}

// hostKeys reads the ConfigMap known-hosts anew, so that an added key is trusted at the next look.
func (h *hub) hostKeys(ctx context.Context) (credential.HostKeys, error) {
	keys := credential.HostKeys{InsecureSkip: h.settings.skipHostKeys}
	var stored corev1.ConfigMap
	err := h.GetAPIReader().Get(ctx, types.NamespacedName{Namespace: h.settings.namespace, Name: "known-hosts"}, &stored)
	if client.IgnoreNotFound(err) != nil {
		return keys, fmt.Errorf("read ConfigMap %s/known-hosts: %w", h.settings.namespace, err)
	}
	keys.KnownHosts = stored.Data["known_hosts"]
	return keys, nil
}

// addMetrics tells which shards are ours, and the numbers of every object, unless there are too many of them for
// whoever collects them.
func (h *hub) addMetrics() error {
	if _, err := telemetry.Register(ctrlmetrics.Registry, shard.NewCollector(h.shards)); err != nil {
		return err
	}
	if h.settings.disableMetrics || !h.settings.objectMetrics {
		return nil
	}
	_, err := telemetry.Register(ctrlmetrics.Registry, gauges.New(h.GetCache()))
	return err
}

func (h *hub) addProbes() error {
	if err := h.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return h.AddReadyzCheck("ping", healthz.Ping)
}

// serve runs an HTTP server inside the manager, on every replica: what it receives, any may pass on.
func (h *hub) serve(address string, handler http.Handler) error {
	if address == "0" || address == "" {
		return nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("receive webhooks: %w", err)
	}
	return h.Add(&manager.Server{
		Name:     "webhook",
		Listener: listener,
		Server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       30 * time.Second,
			WriteTimeout:      10 * time.Second,
			MaxHeaderBytes:    64 << 10,
		},
	})
}

func logger(settings *settings) logr.Logger {
	return newLogger(settings.debug, settings.debugLevel)
}
