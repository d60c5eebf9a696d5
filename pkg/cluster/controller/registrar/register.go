package registrar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/shard"
)

const (
	// ConfigMap in the hub's namespace says under its key config where agents find the hub.
	ConfigMap = "fleet-controller"

	clusterByClient       = "fleet.cluster/client"
	registrationByClient  = "fleet.registration/client"
	defaultTokenRetention = 24 * time.Hour
)

// Objects makes built-in objects be as they should, and removes them.
type Objects interface {
	// Keep creates an object or corrects it; it refuses one that somebody else made. The error is of
	// class fault.Waiting while the object or its namespace is being deleted.
	Keep(ctx context.Context, wanted client.Object) error
	// Remove deletes an object that Keep made, if it is there.
	Remove(ctx context.Context, made client.Object) error
}

// Options of the registrar.
type Options struct {
	SystemNamespace string
	Workers         int
	Now             func() time.Time
	// TokenRetention is how long an expired token and a rejected registration can still be seen; 24 hours if 0.
	TokenRetention time.Duration
	// RequireTokenTTL deletes tokens without TTL.
	RequireTokenTTL bool
	// RefuseServiceAccountAgents rejects agents that speak protocol 0.
	RefuseServiceAccountAgents bool
	// Shards are those this process works on; nil means everything.
	Shards *shard.Shards
}

// Registrar knows how clusters joined.
type Registrar struct{ registrations *registrations }

// Register adds the controllers of tokens and registrations to a manager. The built-in kinds they make
// are read from own, a cache with what is labelled as managed.
func Register(mgr manager.Manager, own ctrlcluster.Cluster, objects Objects, options Options) (*Registrar, error) {
	if options.TokenRetention == 0 {
		options.TokenRetention = defaultTokenRetention
	}
	if err := index(mgr); err != nil {
		return nil, err
	}
	hub, err := newHubFacts(mgr.GetConfig(), own.GetClient(), options.SystemNamespace)
	if err != nil {
		return nil, err
	}
	if err := registerTokens(mgr, own, objects, hub, options); err != nil {
		return nil, fmt.Errorf("register the controller of tokens: %w", err)
	}
	registrations, err := registerRegistrations(mgr, own, objects, hub, options)
	if err != nil {
		return nil, fmt.Errorf("register the controller of registrations: %w", err)
	}
	return &Registrar{registrations}, nil
}

func index(mgr manager.Manager) error {
	ctx, indexer := context.Background(), mgr.GetFieldIndexer()
	err := indexer.IndexField(ctx, &fleet.Cluster{}, clusterByClient, func(o client.Object) []string {
		stored, ok := o.(*fleet.Cluster)
		return present(ok, func() string { return stored.Spec.ClientID })
	})
	if err != nil {
		return fmt.Errorf("index clusters: %w", err)
	}
	err = indexer.IndexField(ctx, &fleet.ClusterRegistration{}, registrationByClient, func(o client.Object) []string {
		stored, ok := o.(*fleet.ClusterRegistration)
		return present(ok, func() string { return stored.Spec.ClientID })
	})
	if err != nil {
		return fmt.Errorf("index registrations: %w", err)
	}
	return nil
}

func present(ok bool, value func() string) []string {
	if !ok || value() == "" {
		return nil
	}
	return []string{value()}
}

// Forget removes the registrations by which a Cluster joined, with what was granted by them.
func (r *Registrar) Forget(ctx context.Context, member *fleet.Cluster) error {
	if member.Spec.ClientID == "" {
		return nil
	}
	var all fleet.ClusterRegistrationList
	if err := r.registrations.client.List(ctx, &all, client.InNamespace(member.Namespace), client.MatchingFields{registrationByClient: member.Spec.ClientID}); err != nil {
		return fmt.Errorf("list registrations of Cluster %s/%s: %w", member.Namespace, member.Name, err)
	}
	var failures []error
	for i := range all.Items {
		if all.Items[i].Status.ClusterName != member.Name {
			continue // waits to join again
		}
		if err := revokeAccount(ctx, r.registrations.objects, &all.Items[i], r.registrations.options); err != nil {
			failures = append(failures, err)
			continue
		}
		if err := r.registrations.client.Delete(ctx, &all.Items[i]); client.IgnoreNotFound(err) != nil {
			failures = append(failures, fmt.Errorf("delete registration %s/%s: %w", member.Namespace, all.Items[i].Name, err))
		}
	}
	return errors.Join(failures...)
}
