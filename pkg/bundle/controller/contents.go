package controller

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// contentIndex finds the BundleDeployments that refer to a Content, now or staged.
const contentIndex = "content"

// unusedFor is how long a Content without users is kept: its first user may be on the way.
const unusedFor = 2 * time.Minute

// contents stores the files of bundles and removes those that nobody refers to. It is a reconciler of
// Content objects, of which it sees the metadata only.
type contents struct {
	client client.Client
	reader client.Reader
	now    func() time.Time

	// stripes keep the creation and the removal of one Content apart.
	stripes [32]sync.Mutex
	mutex   sync.Mutex
	// needed is when a Content known to exist was last asked for.
	needed map[string]time.Time
}

func newContents(writer client.Client, reader client.Reader, now func() time.Time) *contents {
	return &contents{client: writer, reader: reader, now: now, needed: map[string]time.Time{}}
}

func (c *contents) stripe(id string) *sync.Mutex {
	return &c.stripes[crc32.ChecksumIEEE([]byte(id))%uint32(len(c.stripes))]
}

// ensure makes sure that the Content of a bundle exists. The bundle is read whole only when it does not.
func (c *contents) ensure(ctx context.Context, bundle *fleet.Bundle, id string) error {
	stripe := c.stripe(id)
	stripe.Lock()
	defer stripe.Unlock()
	if c.touch(id, false) {
		return nil
	}
	var whole fleet.Bundle
	if err := c.reader.Get(ctx, client.ObjectKeyFromObject(bundle), &whole); err != nil {
		return fmt.Errorf("read bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	stored, err := content.Manifest{Resources: whole.Spec.Resources}.Store()
	if err != nil {
		return err
	}
	if stored.ID != id {
		return fault.New(fault.Transient, "BundleChanged", "bundle %s/%s changed while it was being stored", bundle.Namespace, bundle.Name)
	}
	object, err := stored.Object()
	if err != nil {
		return err
	}
	if err := c.client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		wrapped := fmt.Errorf("store content of bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
		if apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsInvalid(err) {
			return fault.Wrap(fault.Stalled, "ContentRefused", wrapped)
		}
		return wrapped
	}
	c.touch(id, true)
	return nil
}

// touch notes that a Content is needed now, if it is known to exist or exists says so.
func (c *contents) touch(id string, exists bool) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, known := c.needed[id]; !known && !exists {
		return false
	}
	c.needed[id] = c.now()
	return true
}

func (c *contents) forget(id string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.needed, id)
}

func (c *contents) lastNeeded(id string) time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.needed[id]
}

// register adds the controller that collects what nobody refers to.
func (c *contents) register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("content").
		For(&fleet.Content{}, builder.OnlyMetadata).
		Watches(&fleet.BundleDeployment{}, lostReferences()).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		Complete(c)
}

// lostReferences enqueues Contents that a BundleDeployment no longer refers to.
func lostReferences() handler.EventHandler {
	enqueue := func(ids []string, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, id := range ids {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: id}})
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			left := contentOf(e.ObjectNew)
			enqueue(slices.DeleteFunc(contentOf(e.ObjectOld), func(id string) bool { return slices.Contains(left, id) }), queue)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(contentOf(e.Object), queue)
		},
	}
}

// Reconcile deletes a Content that has been without users for a while.
func (c *contents) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(fleet.GroupVersion.WithKind("Content"))
	if err := c.client.Get(ctx, request.NamespacedName, object); err != nil || !object.DeletionTimestamp.IsZero() {
		if err == nil || apierrors.IsNotFound(err) {
			c.forget(request.Name)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	used, err := c.used(ctx, object.Name)
	if err != nil || used {
		return reconcile.Result{}, err
	}
	since := object.CreationTimestamp.Time
	if needed := c.lastNeeded(object.Name); needed.After(since) {
		since = needed
	}
	if wait := unusedFor - c.now().Sub(since); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	return reconcile.Result{}, c.remove(ctx, object)
}

func (c *contents) used(ctx context.Context, id string) (bool, error) {
	var users fleet.BundleDeploymentList
	err := c.client.List(ctx, &users, client.MatchingFields{contentIndex: id}, client.UnsafeDisableDeepCopy, client.Limit(1))
	if err != nil {
		return false, fmt.Errorf("list users of content %s: %w", id, err)
	}
	return len(users.Items) > 0, nil
}

// remove asks the API server once more, because a cache may be behind, and deletes.
func (c *contents) remove(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	stripe := c.stripe(object.Name)
	stripe.Lock()
	defer stripe.Unlock()
	users := &metav1.PartialObjectMetadataList{}
	users.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeploymentList"))
	if err := c.reader.List(ctx, users, client.MatchingLabels{fleet.ContentLabel: object.Name}, client.Limit(1)); err != nil {
		return fmt.Errorf("list users of content %s: %w", object.Name, err)
	}
	if len(users.Items) > 0 {
		return nil
	}
	err := c.client.Delete(ctx, object, client.Preconditions{UID: &object.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete content %s: %w", object.Name, err)
	}
	c.forget(object.Name)
	return nil
}

// contentOf lists the Contents a BundleDeployment refers to.
func contentOf(object client.Object) []string {
	deployment, ok := object.(*fleet.BundleDeployment)
	if !ok {
		return nil
	}
	now, _, _ := strings.Cut(deployment.Spec.DeploymentID, ":")
	staged, _, _ := strings.Cut(deployment.Spec.StagedDeploymentID, ":")
	switch {
	case now == "" && staged == "":
		return nil
	case now == staged || staged == "":
		return []string{now}
	case now == "":
		return []string{staged}
	}
	return []string{now, staged}
}
