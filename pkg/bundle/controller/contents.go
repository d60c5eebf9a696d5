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
	_, stored, err := c.files(ctx, client.ObjectKeyFromObject(bundle), id)
	if err != nil {
		return err
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

// files reads the files of a bundle, which must be those that id names.
func (c *contents) files(ctx context.Context, bundle types.NamespacedName, id string) (content.Manifest, content.Stored, error) {
	var whole fleet.Bundle
	if err := c.reader.Get(ctx, bundle, &whole); err != nil {
		return content.Manifest{}, content.Stored{}, fmt.Errorf("read bundle %s: %w", bundle, err)
	}
	manifest := content.Manifest{Resources: whole.Spec.Resources}
	stored, err := manifest.Store()
	if err == nil && stored.ID != id {
		err = fault.New(fault.Transient, "BundleChanged", "bundle %s changed while it was being read", bundle)
	}
	return manifest, stored, err
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
	err := c.client.Get(ctx, request.NamespacedName, object)
	switch {
	case apierrors.IsNotFound(err):
		c.forget(request.Name)
		return reconcile.Result{}, c.restore(ctx, request.Name)
	case err != nil:
		return reconcile.Result{}, err
	case !object.DeletionTimestamp.IsZero():
		c.forget(request.Name)
		return reconcile.Result{}, nil
	}
	users, err := c.users(ctx, object.Name, client.Limit(1))
	if err != nil || len(users) > 0 {
		return reconcile.Result{}, err
	}
	wait, err := c.remove(ctx, object)
	return reconcile.Result{RequeueAfter: wait}, err
}

// keptFor is how long a Content without users stays, which was created and last asked for at these times.
func keptFor(created, needed, now time.Time) time.Duration {
	since := created
	if needed.After(since) {
		since = needed
	}
	return max(unusedFor-now.Sub(since), 0)
}

// restore stores a Content anew that is gone although deployments refer to it, from a bundle that still has
// these files.
func (c *contents) restore(ctx context.Context, id string) error {
	users, err := c.users(ctx, id)
	if err != nil {
		return err
	}
	asked := map[types.NamespacedName]bool{}
	for i := range users {
		key := types.NamespacedName{Namespace: users[i].Labels[fleet.BundleNamespaceLabel], Name: users[i].Labels[fleet.BundleLabel]}
		if asked[key] {
			continue
		}
		asked[key] = true
		var bundle fleet.Bundle
		if err := c.client.Get(ctx, key, &bundle); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read bundle %s: %w", key, err)
		}
		if summary, ok := content.SummaryOf(&bundle); ok && summary.ManifestID == id && bundle.Spec.ContentsID == "" {
			return retried(c.ensure(ctx, &bundle, id))
		}
	}
	return nil
}

// users lists deployments that refer to a Content.
func (c *contents) users(ctx context.Context, id string, options ...client.ListOption) ([]fleet.BundleDeployment, error) {
	var users fleet.BundleDeploymentList
	options = append(options, client.MatchingFields{contentIndex: id}, client.UnsafeDisableDeepCopy)
	if err := c.client.List(ctx, &users, options...); err != nil {
		return nil, fmt.Errorf("list users of content %s: %w", id, err)
	}
	return users.Items, nil
}

// remove deletes a Content that nobody needed for a while, or returns how long to wait for that. It asks the
// API server once more for users, because a cache may be behind.
func (c *contents) remove(ctx context.Context, object *metav1.PartialObjectMetadata) (time.Duration, error) {
	stripe := c.stripe(object.Name)
	stripe.Lock()
	defer stripe.Unlock()
	// Looked up under the lock: a bundle that is told now that the Content exists must find it.
	if wait := keptFor(object.CreationTimestamp.Time, c.lastNeeded(object.Name), c.now()); wait > 0 {
		return wait, nil
	}
	users := &metav1.PartialObjectMetadataList{}
	users.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeploymentList"))
	if err := c.reader.List(ctx, users, client.MatchingLabels{fleet.ContentLabel: object.Name}, client.Limit(1)); err != nil {
		return 0, fmt.Errorf("list users of content %s: %w", object.Name, err)
	}
	if len(users.Items) > 0 {
		return unusedFor, nil
	}
	err := c.client.Delete(ctx, object, client.Preconditions{UID: &object.UID})
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("delete content %s: %w", object.Name, err)
	}
	c.forget(object.Name)
	return 0, nil
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
