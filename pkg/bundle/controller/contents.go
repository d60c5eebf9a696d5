package controller

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cached"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// contentsIndex finds the Bundles that do not hold their files by the Content or the Secret that leads to them.
const contentsIndex = "contents"

// contents stores the files of bundles that hold them. What nobody refers to is collected (collector.go).
type contents struct {
	client client.Client
	// cached reads the metadata of Contents from the cache, reader from the API server.
	cached client.Reader
	reader client.Reader
	store  store.Store
	// deployments are those that the cache shows.
	deployments *cached.Objects[*fleet.BundleDeployment]
	caches      *confirm.Informers
	now         func() time.Time
	// unusedFor is how long what nobody refers to is kept.
	unusedFor time.Duration

	// stripes keep the creation and the removal of one Content apart.
	stripes [32]sync.Mutex
	mutex   sync.Mutex
	// needed is when a Content known to exist was last asked for.
	needed map[string]time.Time
}

func newContents(writer client.Client, metadata, reader client.Reader, deployments *cached.Objects[*fleet.BundleDeployment], caches *confirm.Informers, now func() time.Time) *contents {
	return &contents{
		client: writer, cached: metadata, reader: reader, deployments: deployments, caches: caches, now: now, unusedFor: unusedFor,
		store: store.Store{Client: writer, Now: now}, needed: map[string]time.Time{},
	}
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
	_, stored, err := held(&whole, id)
	if errors.Is(err, errChanged) && whole.Generation == bundle.Generation {
		err = fault.New(fault.Transient, "CacheWrong", "the cache shows other files of bundle %s/%s than it has", bundle.Namespace, bundle.Name)
	}
	if err != nil {
		return err
	}
	if err := c.store.Write(ctx, stored); err != nil {
		return fmt.Errorf("store the files of bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	c.touch(id, true)
	return nil
}

// held returns the files that a Bundle holds, which must be those that id names.
func held(bundle *fleet.Bundle, id string) (content.Manifest, content.Stored, error) {
	manifest := content.Manifest{Resources: bundle.Spec.Resources}
	stored, err := manifest.Store()
	if err == nil && stored.ID != id {
		err = changedMeanwhile(bundle)
	}
	return manifest, stored, err
}

// errChanged says that the cache shows a bundle as it was: the event that brings the change is on its way.
var errChanged = fault.New(fault.Waiting, "BundleChanged", "it changed while it was being read")

func changedMeanwhile(bundle *fleet.Bundle) error {
	return fmt.Errorf("read bundle %s/%s: %w", bundle.Namespace, bundle.Name, errChanged)
}

// files reads the files of a bundle that are on the hub, which must be those that id names.
func (r *Reconciler) files(ctx context.Context, key types.NamespacedName, id string) (content.Manifest, error) {
	var bundle fleet.Bundle
	if err := r.Reader.Get(ctx, key, &bundle); err != nil {
		return content.Manifest{}, fmt.Errorf("read bundle %s: %w", key, err)
	}
	switch {
	case bundle.Spec.ContentsID == "":
		manifest, _, err := held(&bundle, id)
		return manifest, err
	case bundle.Spec.ContentsID == id && content.OnHub(&bundle.Spec):
		return store.Read(ctx, r.Reader, id)
	case bundle.Spec.ContentsID == id:
		return r.Keeper.Pull(ctx, key.Namespace, id)
	}
	return content.Manifest{}, changedMeanwhile(&bundle)
}

// present says in an error that a Content is missing which whoever made the bundle has to store. A cache may
// be behind, so that the API server is asked before.
func (c *contents) present(ctx context.Context, bundle *fleet.Bundle) error {
	for _, reader := range []client.Reader{c.cached, c.reader} {
		err := reader.Get(ctx, types.NamespacedName{Name: bundle.Spec.ContentsID}, contentMetadata())
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("look for the files of bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
		}
	}
	return missingContents(bundle, "the Content %s", bundle.Spec.ContentsID)
}

func missingContents(bundle *fleet.Bundle, what string, args ...any) error {
	return fault.New(fault.Waiting, fleet.ReasonContentsMissing, "%s with the files of bundle %s/%s does not exist; its GitRepo writes it again, after `fleet apply` apply once more",
		fmt.Sprintf(what, args...), bundle.Namespace, bundle.Name)
}

func contentMetadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(fleet.GroupVersion.WithKind("Content"))
	return object
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

// bundlesOfContents wakes the Bundles up whose files came or went.
func (r *Reconciler) bundlesOfContents(ctx context.Context, object client.Object) []reconcile.Request {
	var bundles fleet.BundleList
	options := []client.ListOption{client.MatchingFields{contentsIndex: object.GetName()}, client.UnsafeDisableDeepCopy}
	if object.GetNamespace() != "" {
		options = append(options, client.InNamespace(object.GetNamespace()))
	}
	if err := r.Client.List(ctx, &bundles, options...); err != nil {
		return nil
	}
	found := make([]reconcile.Request, 0, len(bundles.Items))
	for i := range bundles.Items {
		found = append(found, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&bundles.Items[i])})
	}
	return found
}

// collectPause is how long what has lost a user waits to be looked at: the deployments of a bundle leave it one after
// the other.
const collectPause = time.Second

// lostReferences enqueues what an object no longer refers to, after lost was told.
func lostReferences(referred func(client.Object) []types.NamespacedName, lost func(types.NamespacedName)) handler.EventHandler {
	enqueue := func(keys []types.NamespacedName, queue requests) {
		for _, key := range keys {
			lost(key)
			queue.AddAfter(reconcile.Request{NamespacedName: key}, collectPause)
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue requests) {
			left := referred(e.ObjectNew)
			enqueue(slices.DeleteFunc(referred(e.ObjectOld), func(key types.NamespacedName) bool { return slices.Contains(left, key) }), queue)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue requests) {
			enqueue(referred(e.Object), queue)
		},
	}
}

// lostContents enqueues Contents by the names that an object no longer has.
func lostContents(referred func(client.Object) []string) handler.EventHandler {
	return lostReferences(func(object client.Object) []types.NamespacedName {
		var keys []types.NamespacedName
		for _, name := range referred(object) {
			keys = append(keys, types.NamespacedName{Name: name})
		}
		return keys
	}, func(types.NamespacedName) {})
}

// contentOf lists the contents a BundleDeployment refers to.
func contentOf(object client.Object) []string {
	if deployment, ok := object.(*fleet.BundleDeployment); ok {
		return contentOfDeployment(deployment)
	}
	return nil
}

func contentOfDeployment(deployment *fleet.BundleDeployment) []string {
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

// contentsOf lists the contents a Bundle refers to instead of holding them.
func contentsOf(object client.Object) []string {
	if bundle, ok := object.(*fleet.Bundle); ok && bundle.Spec.ContentsID != "" {
		return []string{bundle.Spec.ContentsID}
	}
	return nil
}
