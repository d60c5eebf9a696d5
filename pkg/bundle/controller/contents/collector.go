package contents

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/merge/carrier"
	"github.com/fairlead-dev/fairlead/pkg/shard"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

const (
	// unusedFor is how long a Content without users is kept by default: its first user may be on the way.
	unusedFor = 2 * time.Minute
	// unfinishedFor is how long chunks without a head are kept: the rest may be on the way.
	unfinishedFor = 30 * time.Minute
)

// register adds the controller that collects what nobody refers to. Of Contents it sees the metadata only.
func (c *hub) register(mgr ctrl.Manager, shards *shard.Shards) error {
	build := ctrl.NewControllerManagedBy(mgr).
		Named("content").
		For(&fleet.Content{}, builder.OnlyMetadata).
		Watches(&fleet.BundleDeployment{}, lostContents(contentOf)).
		Watches(&fleet.Bundle{}, lostContents(contentsOf)).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2})
	return shards.CompleteFrom(c.cached, mgr.GetScheme(), build, contentMetadata(), c)
}

// Reconcile deletes a Content that has been without users for a while, and one that lost a chunk: whoever can
// read a head must find all of it.
func (c *hub) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := contentMetadata()
	err := c.cached.Get(ctx, request.NamespacedName, object)
	head, _, isChunk := strings.Cut(request.Name, ".")
	switch {
	case apierrors.IsNotFound(err) && isChunk:
		return reconcile.Result{}, c.lostChunk(ctx, head)
	case apierrors.IsNotFound(err):
		c.forget(request.Name)
		if err := c.restore(ctx, request.Name); err != nil {
			return reconcile.Result{}, err
		}
		wait, err := c.leftChunks(ctx, request.Name)
		return reconcile.Result{RequeueAfter: wait}, err
	case err != nil:
		return reconcile.Result{}, err
	case !object.DeletionTimestamp.IsZero():
		c.forget(request.Name)
		return reconcile.Result{}, nil
	case isChunk:
		wait, err := c.removeUnfinished(ctx, object)
		return reconcile.Result{RequeueAfter: wait}, err
	}
	used, err := c.used(ctx, object.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if used {
		return reconcile.Result{}, c.checkWhole(ctx, object)
	}
	wait, err := c.remove(ctx, object)
	return reconcile.Result{RequeueAfter: wait}, err
}

// keptFor is how long something without users stays, which was created and last asked for at these times.
func keptFor(grace time.Duration, now time.Time, times ...time.Time) time.Duration {
	var since time.Time
	for _, at := range times {
		if at.After(since) {
			since = at
		}
	}
	return max(grace-now.Sub(since), 0)
}

// restore stores a Content anew that is gone although deployments refer to it, from a bundle that still has
// these files. Bundles that do not hold theirs say themselves that they are missing.
func (c *hub) restore(ctx context.Context, id string) error {
	users, err := c.users(ctx, id)
	if err != nil {
		return err
	}
	asked := map[types.NamespacedName]bool{}
	for _, user := range users {
		key := target.BundleOf(user.Labels)
		if asked[key] {
			continue
		}
		asked[key] = true
		var bundle fleet.Bundle
		if err := c.client.Get(ctx, key, &bundle); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read bundle %s: %w", key, err)
		}
		if summary, ok := content.SummaryOf(&bundle); ok && summary.ManifestID == id && bundle.Spec.ContentsID == "" {
			return fault.Retried(c.ensure(ctx, &bundle, id))
		}
	}
	return nil
}

// used says that a deployment or a bundle refers to a Content.
func (c *hub) used(ctx context.Context, id string) (bool, error) {
	users, err := c.users(ctx, id)
	if err != nil || len(users) > 0 {
		return true, err
	}
	var bundles fleet.BundleList
	err = c.client.List(ctx, &bundles, client.MatchingFields{contentsIndex: id}, client.UnsafeDisableDeepCopy, client.Limit(1))
	if err != nil {
		return true, fmt.Errorf("list bundles with content %s: %w", id, err)
	}
	return len(bundles.Items) > 0, nil
}

// users lists deployments that refer to a Content.
func (c *hub) users(ctx context.Context, id string) ([]*fleet.BundleDeployment, error) {
	users, err := c.deployments.By(ctx, DeploymentIndex, id)
	if err != nil {
		return nil, fmt.Errorf("list users of content %s: %w", id, err)
	}
	return users, nil
}

// remove deletes a Content that nobody needed for a while, or returns how long to wait for that. It asks the
// API server once more for users, because a cache may be behind.
func (c *hub) remove(ctx context.Context, object *metav1.PartialObjectMetadata) (time.Duration, error) {
	stripe := c.stripe(object.Name)
	stripe.Lock()
	defer stripe.Unlock()
	// Looked up under the lock: a bundle that is told now that the Content exists must find it.
	needed := store.NeededAt(object.Annotations)
	if wait := keptFor(c.unusedFor, c.now(), object.CreationTimestamp.Time, needed, c.lastNeeded(object.Name)); wait > 0 {
		return wait, nil
	}
	if !c.caches.Seen(&fleet.BundleDeployment{}) || !c.caches.Seen(&fleet.Bundle{}) {
		return c.unusedFor, nil // that nobody needs anything may be what a wrong first list says
	}
	merged, err := c.merges(ctx)
	if err != nil {
		return 0, err
	}
	used, err := carrier.UserOf(ctx, c.reader, object.Name, merged)
	if err != nil {
		return 0, fmt.Errorf("look for users of content %s: %w", object.Name, err)
	}
	if used {
		return c.unusedFor, nil
	}
	return 0, c.drop(ctx, object)
}

// merges says that deployments are merged, or may be soon.
func (c *hub) merges(ctx context.Context) (bool, error) {
	var bundles fleet.BundleList
	if err := c.client.List(ctx, &bundles, client.UnsafeDisableDeepCopy); err != nil {
		return true, fmt.Errorf("list bundles: %w", err)
	}
	for i := range bundles.Items {
		if _, ok, _ := merge.PlaceOf(&bundles.Items[i]); ok {
			return true, nil
		}
	}
	deployments, err := c.deployments.All(ctx)
	if err != nil {
		return true, fmt.Errorf("list deployments: %w", err)
	}
	return merge.AnyInMerged(deployments), nil
}

// drop deletes a Content, the head before its chunks. Whoever relied on it since it was looked at has changed
// its version.
func (c *hub) drop(ctx context.Context, head *metav1.PartialObjectMetadata) error {
	if err := c.delete(ctx, head); err != nil {
		return err
	}
	c.forget(head.Name)
	if head.Annotations[fleet.ChunksAnnotation] == "" {
		return nil
	}
	chunks, err := c.chunks(ctx, c.cached, head.Name)
	if err != nil {
		return err
	}
	for i := range chunks {
		if err := c.delete(ctx, &chunks[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c *hub) delete(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	err := c.client.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete content %s: %w", object.Name, err)
	}
	return nil
}

// chunks lists the chunks of a Content.
func (c *hub) chunks(ctx context.Context, reader client.Reader, head string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(fleet.GroupVersion.WithKind("ContentList"))
	if err := reader.List(ctx, list, client.MatchingLabels{fleet.ChunkOfLabel: head}); err != nil {
		return nil, fmt.Errorf("list chunks of content %s: %w", head, err)
	}
	return list.Items, nil
}

// lostChunk looks after the head of a chunk that is gone.
func (c *hub) lostChunk(ctx context.Context, name string) error {
	head := contentMetadata()
	if err := c.cached.Get(ctx, types.NamespacedName{Name: name}, head); err != nil {
		return client.IgnoreNotFound(err)
	}
	return c.checkWhole(ctx, head)
}

// leftChunks deletes the chunks of a head that is gone, or returns when to look for them again.
func (c *hub) leftChunks(ctx context.Context, head string) (time.Duration, error) {
	chunks, err := c.chunks(ctx, c.cached, head)
	if err != nil {
		return 0, err
	}
	var next time.Duration
	for i := range chunks {
		wait, err := c.removeUnfinished(ctx, &chunks[i])
		if err != nil {
			return 0, err
		}
		next = max(next, wait)
	}
	return next, nil
}

// checkWhole deletes a Content that has lost a chunk, so that it is stored anew.
func (c *hub) checkWhole(ctx context.Context, head *metav1.PartialObjectMetadata) error {
	wanted, err := strconv.Atoi(head.Annotations[fleet.ChunksAnnotation])
	if err != nil {
		return nil // it holds everything itself
	}
	for _, reader := range []client.Reader{c.cached, c.reader} {
		chunks, err := c.chunks(ctx, reader, head.Name)
		if err != nil || len(chunks) >= wanted {
			return err
		}
	}
	stripe := c.stripe(head.Name)
	stripe.Lock()
	defer stripe.Unlock()
	return c.drop(ctx, head)
}

// removeUnfinished deletes a chunk whose head was not written, or returns how long to wait for it.
func (c *hub) removeUnfinished(ctx context.Context, chunk *metav1.PartialObjectMetadata) (time.Duration, error) {
	for _, reader := range []client.Reader{c.cached, c.reader} {
		err := reader.Get(ctx, types.NamespacedName{Name: chunk.Labels[fleet.ChunkOfLabel]}, contentMetadata())
		if !apierrors.IsNotFound(err) {
			return 0, err
		}
	}
	if wait := keptFor(unfinishedFor, c.now(), chunk.CreationTimestamp.Time, store.NeededAt(chunk.Annotations)); wait > 0 {
		return wait, nil
	}
	return 0, c.delete(ctx, chunk)
}
