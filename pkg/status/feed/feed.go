package feed

import (
	"context"
	"fmt"
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

	mutex    sync.Mutex
	index    *status.Index
	synced   bool
	queues   map[status.ParentKind]workqueue.TypedRateLimitingInterface[reconcile.Request]
	clusters chan event.GenericEvent
}

// New returns a feed that lets an object's controller know at most once an interval.
func New(informers cache.Informers, interval time.Duration, now func() time.Time) *Feed {
	return &Feed{
		informers: informers,
		pace:      newPace(interval, now),
		index:     status.NewIndex(),
		queues:    map[status.ParentKind]workqueue.TypedRateLimitingInterface[reconcile.Request]{},
		clusters:  make(chan event.GenericEvent, 1024),
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
	all := f.index.Parents()
	f.mutex.Unlock()
	f.notify(ctx, all)
}

func (f *Feed) changed(ctx context.Context, object any) {
	deployment, ok := object.(*fleet.BundleDeployment)
	if !ok {
		return
	}
	record := status.Trim(deployment)
	f.mutex.Lock()
	affected := f.index.Set(keyOf(deployment), record)
	synced := f.synced
	f.mutex.Unlock()
	if synced {
		f.notify(ctx, affected)
	}
}

func (f *Feed) deleted(ctx context.Context, object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	deployment, ok := object.(*fleet.BundleDeployment)
	if !ok {
		return
	}
	f.mutex.Lock()
	affected := f.index.Delete(keyOf(deployment))
	synced := f.synced
	f.mutex.Unlock()
	if synced {
		f.notify(ctx, affected)
	}
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
