package shard

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Complete builds a controller that works only on what is this process's: it passes keys of other shards, and
// objects for other controllers, over, and is given all keys of a shard when it comes. kind is an example of
// what the keys name, as it is cached: typed, or metadata only. A nil receiver has everything.
func (s *Shards) Complete(mgr manager.Manager, build *builder.Builder, kind client.Object, inner reconcile.Reconciler) error {
	return s.CompleteFrom(mgr.GetClient(), mgr.GetScheme(), build, kind, inner)
}

// CompleteFrom is Complete for a kind that is in another cache than the manager's.
func (s *Shards) CompleteFrom(
	cached client.Reader, scheme *runtime.Scheme, build *builder.Builder, kind client.Object, inner reconcile.Reconciler,
) error {
	if s == nil {
		return build.Complete(inner)
	}
	controller := &controller{shards: s, inner: inner, client: cached, scheme: scheme, kind: kind}
	s.takeover = append(s.takeover, controller.enqueue)
	return build.WatchesRawSource(source.Func(controller.start)).Complete(controller)
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// controller stands before the reconciler of a kind.
type controller struct {
	shards *Shards
	inner  reconcile.Reconciler
	client client.Reader
	scheme *runtime.Scheme
	kind   client.Object

	queue queue // guarded by shards.mu
}

func (c *controller) start(_ context.Context, queue queue) error {
	c.shards.mu.Lock()
	defer c.shards.mu.Unlock()
	c.queue = queue
	return nil
}

// Reconcile works on a key that is this process's.
func (c *controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	work, done, ours := c.shards.begin(ctx, request.Namespace, request.Name)
	if !ours {
		return reconcile.Result{}, nil // whoever has the shard works on it; if it comes here, so does the key
	}
	defer done()
	meant, err := c.meantForUs(work, request)
	if err != nil || !meant {
		return reconcile.Result{}, err
	}
	result, err := c.inner.Reconcile(work, request)
	if context.Cause(work) == errLost { //nolint:errorlint // our own, never wrapped
		return reconcile.Result{}, nil
	}
	return result, err
}

// meantForUs says that an object carries this process's shard-ref, or none where the process has none. An empty
// one counts as none. What is gone is everybody's, to forget.
func (c *controller) meantForUs(ctx context.Context, request reconcile.Request) (bool, error) {
	object := c.kind.DeepCopyObject().(client.Object)
	if err := c.client.Get(ctx, request.NamespacedName, object); err != nil {
		return client.IgnoreNotFound(err) == nil, client.IgnoreNotFound(err)
	}
	return object.GetLabels()[fleet.ShardLabel] == c.shards.ref, nil
}

// enqueue adds the keys of shards that came.
func (c *controller) enqueue(ctx context.Context, shards map[int]bool) {
	c.shards.mu.Lock()
	queue := c.queue
	c.shards.mu.Unlock()
	if queue == nil {
		return // not started: it begins with everything
	}
	keys, err := c.keys(ctx)
	if err != nil {
		c.shards.log.Error(err, "list what a shard holds")
	}
	for _, key := range keys {
		if shards[Of(key.Namespace, key.Name, c.shards.count)] {
			queue.Add(reconcile.Request{NamespacedName: key})
		}
	}
}

func (c *controller) keys(ctx context.Context) ([]client.ObjectKey, error) {
	gvk, err := apiutil.GVKForObject(c.kind, c.scheme)
	if err != nil {
		return nil, err
	}
	gvk.Kind += "List"
	var list client.ObjectList
	if _, metadata := c.kind.(*metav1.PartialObjectMetadata); metadata {
		partial := &metav1.PartialObjectMetadataList{}
		partial.SetGroupVersionKind(gvk)
		list = partial
	} else {
		made, err := c.scheme.New(gvk)
		if err != nil {
			return nil, err
		}
		list = made.(client.ObjectList)
	}
	if err := c.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	var keys []client.ObjectKey
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(client.Object); ok {
			keys = append(keys, client.ObjectKeyFromObject(object))
		}
		return nil
	})
	return keys, err
}
