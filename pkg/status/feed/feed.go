package feed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Feed is the roll-up of a hub. Make one with New and add it to the manager.
type Feed struct {
	informers cache.Informers
	pace      *pace

	mutex  sync.Mutex
	index  *status.Index
	synced bool
	// generations of the deployments that are counted.
	generations map[status.Ref]int64
	// early are the parents of what came before everything was delivered.
	early    map[status.Parent]bool
	queues   map[status.ParentKind]workqueue.TypedRateLimitingInterface[reconcile.Request]
	clusters chan event.GenericEvent
}

// New returns a feed that lets an object's controller know at most once an interval.
func New(informers cache.Informers, interval time.Duration, now func() time.Time) *Feed {
	return &Feed{
		informers:   informers,
		pace:        newPace(interval, now),
		index:       status.NewIndex(),
		generations: map[status.Ref]int64{},
		early:       map[status.Parent]bool{},
		queues:      map[status.ParentKind]workqueue.TypedRateLimitingInterface[reconcile.Request]{},
		clusters:    make(chan event.GenericEvent, 1024),
	}
}

// Source delivers the objects of a kind whose numbers changed; one controller may use it.
func (f *Feed) Source(kind status.ParentKind) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.queues[kind] = queue
		return nil
	})
}

// Clusters delivers the Clusters (namespace and name only) whose numbers changed.
func (f *Feed) Clusters() <-chan event.GenericEvent { return f.clusters }

// Start counts until the context ends.
func (f *Feed) Start(ctx context.Context) error {
	informer, err := f.informers.GetInformer(ctx, &fleet.BundleDeployment{})
	if err != nil {
		return fmt.Errorf("watch bundledeployments: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { f.changed(ctx, object) },
		UpdateFunc: func(_, object any) { f.changed(ctx, object) },
		DeleteFunc: func(object any) { f.deleted(ctx, object) },
	})
	if err != nil {
		return fmt.Errorf("watch bundledeployments: %w", err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil
	}
	f.open(ctx)
	<-ctx.Done()
	return nil
}

// open gives the numbers out from now on and lets every controller know of all it has.
func (f *Feed) open(ctx context.Context) {
	f.mutex.Lock()
	f.synced = true
	all := slices.Collect(maps.Keys(f.early))
	f.early = nil
	f.mutex.Unlock()
	f.notify(ctx, all)
}

func (f *Feed) changed(ctx context.Context, object any) {
	deployment, ok := object.(*fleet.BundleDeployment)
	if !ok {
		return
	}
	key, record := keyOf(deployment), status.Trim(deployment)
	f.count(ctx, func(index *status.Index) []status.Parent {
		f.generations[key] = deployment.Generation
		return index.Set(key, record)
	})
}

func (f *Feed) deleted(ctx context.Context, object any) {
	key, ok := deletedKey(object)
	if !ok {
		return
	}
	f.count(ctx, func(index *status.Index) []status.Parent {
		delete(f.generations, key)
		return index.Delete(key)
	})
}

// deletedKey names a deleted deployment; of one whose deletion was missed the name may be all that is known.
func deletedKey(object any) (status.Ref, bool) {
	switch gone := object.(type) {
	case *fleet.BundleDeployment:
		return keyOf(gone), true
	case toolscache.DeletedFinalStateUnknown:
		namespace, name, err := toolscache.SplitMetaNamespaceKey(gone.Key)
		return status.Ref{Namespace: namespace, Name: name}, err == nil
	}
	return status.Ref{}, false
}

// count changes the index and lets the affected controllers know, later if not everything is counted yet.
func (f *Feed) count(ctx context.Context, change func(*status.Index) []status.Parent) {
	f.mutex.Lock()
	affected := change(f.index)
	if !f.synced {
		for _, parent := range affected {
			f.early[parent] = true
		}
		affected = nil
	}
	f.mutex.Unlock()
	f.notify(ctx, affected)
}

func keyOf(deployment *fleet.BundleDeployment) status.Ref {
	return status.Ref{Namespace: deployment.Namespace, Name: deployment.Name}
}

func (f *Feed) notify(ctx context.Context, parents []status.Parent) {
	for _, parent := range parents {
		if parent.Kind == status.KindCluster {
			f.notifyCluster(ctx, parent)
			continue
		}
		f.mutex.Lock()
		queue := f.queues[parent.Kind]
		f.mutex.Unlock()
		if queue == nil {
			continue
		}
		key := types.NamespacedName{Namespace: parent.Namespace, Name: parent.Name}
		queue.AddAfter(reconcile.Request{NamespacedName: key}, f.pace.delay(parent))
	}
}

func (f *Feed) notifyCluster(ctx context.Context, parent status.Parent) {
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name}}
	select {
	case f.clusters <- event.GenericEvent{Object: cluster}:
	case <-ctx.Done():
	}
}

// GitRepoDelay is how long a notification of a GitRepo has to wait that comes from elsewhere, so that both
// ways together wake its controller up at most once an interval.
func (f *Feed) GitRepoDelay(namespace, name string) time.Duration {
	return f.pace.delay(status.Parent{Kind: status.KindGitRepo, Ref: status.Ref{Namespace: namespace, Name: name}})
}

// Bundle returns the roll-up of a Bundle's deployments; ok is false until everything is counted.
func (f *Feed) Bundle(namespace, name string) (rollup status.Rollup, ok bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.synced {
		return status.Rollup{}, false
	}
	return f.index.Bundle(namespace, name), true
}

// Covers says that the given deployments, or newer versions of their specs, are counted. A controller that
// reads deployments elsewhere asks before it tells numbers that would be older than what it read.
func (f *Feed) Covers(deployments []fleet.BundleDeployment) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for i := range deployments {
		if counted, ok := f.generations[keyOf(&deployments[i])]; !ok || counted < deployments[i].Generation {
			return false
		}
	}
	return true
}

// Cluster returns the roll-up of a Cluster's deployments; ok is false until everything is counted.
func (f *Feed) Cluster(namespace, name string) (rollup status.Rollup, ok bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.synced {
		return status.Rollup{}, false
	}
	return f.index.Cluster(namespace, name), true
}

// Repo is the roll-up of a GitRepo's deployments with its lists of objects and clusters.
type Repo struct {
	Rollup     status.Rollup
	Resources  []fleet.Resource
	PerCluster map[string]*fleet.ResourceCounts
}

// GitRepo returns the roll-up of a GitRepo's deployments; ok is false until everything is counted.
func (f *Feed) GitRepo(namespace, name string) (repo Repo, ok bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if !f.synced {
		return Repo{}, false
	}
	parent := status.Parent{Kind: status.KindGitRepo, Ref: status.Ref{Namespace: namespace, Name: name}}
	return Repo{
		Rollup:     f.index.Of(parent),
		Resources:  f.index.Resources(parent),
		PerCluster: f.index.PerCluster(parent),
	}, true
}
