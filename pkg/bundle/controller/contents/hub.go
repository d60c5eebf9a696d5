package contents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cached"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// hub stores the files of bundles in Contents on the hub. What nobody refers to is collected (collector.go).
type hub struct {
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

func newHub(options Options, metadata client.Reader) *hub {
	return &hub{
		client: options.Client, cached: metadata, reader: options.Reader, deployments: options.Deployments, caches: options.Caches, now: options.Now,
		unusedFor: cmp.Or(options.KeepUnused, unusedFor), store: store.Store{Client: options.Client, Now: options.Now}, needed: map[string]time.Time{},
	}
}

func (c *hub) stripe(id string) *sync.Mutex {
	return &c.stripes[crc32.ChecksumIEEE([]byte(id))%uint32(len(c.stripes))]
}

// ensure makes sure that the Content of a bundle exists. The bundle is read whole only when it does not.
func (c *hub) ensure(ctx context.Context, bundle *fleet.Bundle, id string) error {
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
	if errors.Is(err, ErrChanged) && whole.Generation == bundle.Generation {
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

// ErrChanged says that the cache shows a bundle as it was: the event that brings the change is on its way.
var ErrChanged = fault.New(fault.Waiting, "BundleChanged", "it changed while it was being read")

func changedMeanwhile(bundle *fleet.Bundle) error {
	return fmt.Errorf("read bundle %s/%s: %w", bundle.Namespace, bundle.Name, ErrChanged)
}

// present says in an error that a Content is missing which whoever made the bundle has to store. A cache may
// be behind, so that the API server is asked before.
func (c *hub) present(ctx context.Context, bundle *fleet.Bundle) error {
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
func (c *hub) touch(id string, exists bool) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, known := c.needed[id]; !known && !exists {
		return false
	}
	c.needed[id] = c.now()
	return true
}

func (c *hub) forget(id string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.needed, id)
}

func (c *hub) lastNeeded(id string) time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.needed[id]
}
