package controller

import (
	"fmt"
	"net/http"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/cluster/controller/registrar"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
	"github.com/fairlead-dev/fairlead/pkg/shard"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// Rollups tells the state of all deployments on a cluster.
type Rollups interface {
	// Cluster returns the roll-up of a Cluster by its namespace and name; ok is false while the
	// deployments are not all counted yet, as after a start.
	Cluster(namespace, name string) (rollup tally.Rollup, ok bool)
	// Telling asks whether a roll-up that is read afterwards may be told.
	Telling(kind tally.ParentKind, namespace, name string) feed.Telling
	// Changed lets an object be woken up in its time for a change that is not one of its deployments.
	Changed(kind tally.ParentKind, namespace, name string)
	// Source delivers the objects of a kind whose time has come.
	Source(kind tally.ParentKind) source.Source
}

// Options of the controllers. The zero value of every field but Rollups is usable.
type Options struct {
	// SystemNamespace of the hub, where its ConfigMap is; cattle-fleet-system if empty.
	SystemNamespace string
	Rollups         Rollups
	// Caches make the informers and confirm what they say; nil means that caches are believed.
	Caches *confirm.Informers
	// Shards are those this process works on; nil means everything.
	Shards *shard.Shards
	// Workers is how many objects of a kind are worked on at a time; 16 if 0.
	Workers int
	// Metrics count renewals; nil for none.
	Metrics *Metrics
	// Now is the clock; time.Now if nil.
	Now func() time.Time
	// LastSeenEvery is how often a healthy cluster's last-seen time is written; with 0 it is written only
	// when a cluster comes or goes, so that a healthy fleet causes no writes but its leases.
	LastSeenEvery time.Duration
	// DeletionGrace is how long a deleted Cluster waits for an agent that answers to uninstall what it
	// deployed; 5 minutes if 0. An agent that does not answer is not waited for.
	DeletionGrace time.Duration
	// TokenRetention is how long an expired token and a rejected registration can still be seen; 24 hours if 0.
	TokenRetention time.Duration
	// RequireTokenTTL deletes tokens without TTL.
	RequireTokenTTL bool
	// RefuseServiceAccountAgents rejects agents that speak protocol 0, upstream's, which get a service
	// account's token in place of a certificate.
	RefuseServiceAccountAgents bool
}

const (
	clusterByNamespace   = "fleet.cluster/namespace"
	defaultWorkers       = 16
	defaultDeletionGrace = 5 * time.Minute
)

func (o Options) withDefaults() Options {
	if o.SystemNamespace == "" {
		o.SystemNamespace = cluster.DefaultSystemNamespace
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.DeletionGrace == 0 {
		o.DeletionGrace = defaultDeletionGrace
	}
	return o
}

// Register adds the controllers to a manager whose scheme knows the fleet kinds and the built-in ones.
// It may be called once a manager.
func Register(mgr manager.Manager, options Options) error {
	options = options.withDefaults()
	own, err := newOwn(mgr, options)
	if err != nil {
		return err
	}
	objects := keeper{cached: own.GetClient(), live: mgr.GetAPIReader()}
	joining, err := registrar.Register(mgr, own, objects, registrar.Options{
		SystemNamespace: options.SystemNamespace, Workers: options.Workers, Now: options.Now,
		TokenRetention: options.TokenRetention, RequireTokenTTL: options.RequireTokenTTL,
		RefuseServiceAccountAgents: options.RefuseServiceAccountAgents, Shards: options.Shards,
	})
	if err != nil {
		return fmt.Errorf("register the registrar: %w", err)
	}
	if err := registerClusters(mgr, own, objects, joining, options); err != nil {
		return fmt.Errorf("register the controller of clusters: %w", err)
	}
	if err := registerGroups(mgr, options); err != nil {
		return fmt.Errorf("register the controller of cluster groups: %w", err)
	}
	return nil
}

// newOwn returns the cache of the kinds these controllers make themselves, each filtered on the server.
func newOwn(mgr manager.Manager, options Options) (ctrlcluster.Cluster, error) {
	managed := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{fleet.ManagedLabel: "true"})}
	ofTokens, err := labels.NewRequirement(fleet.RegistrationTokenLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	own, err := ctrlcluster.New(mgr.GetConfig(), func(o *ctrlcluster.Options) {
		o.Scheme = mgr.GetScheme()
		o.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mgr.GetRESTMapper(), nil }
		o.Cache.DefaultTransform = cache.TransformStripManagedFields()
		o.Cache.ReaderFailOnMissingInformer = false
		if options.Caches != nil {
			o.Cache.NewInformer = options.Caches.New
		}
		o.Cache.ByObject = map[client.Object]cache.ByObject{
			&corev1.Namespace{}:                         managed,
			&corev1.ServiceAccount{}:                    managed,
			&rbacv1.Role{}:                              managed,
			&rbacv1.RoleBinding{}:                       managed,
			&rbacv1.ClusterRoleBinding{}:                managed,
			&certificatesv1.CertificateSigningRequest{}: managed,
			&corev1.Secret{}:                            {Label: labels.NewSelector().Add(*ofTokens)},
			&coordinationv1.Lease{}:                     {Field: fields.OneTermEqualSelector("metadata.name", cluster.LeaseName)},
			&corev1.ConfigMap{}: {
				Namespaces: map[string]cache.Config{options.SystemNamespace: {}},
				Field:      fields.OneTermEqualSelector("metadata.name", registrar.ConfigMap),
			},
		}
	})
	if err != nil {
		return nil, fmt.Errorf("make the cache of cluster controllers: %w", err)
	}
	if err := mgr.Add(own); err != nil {
		return nil, fmt.Errorf("add the cache of cluster controllers: %w", err)
	}
	return own, nil
}
