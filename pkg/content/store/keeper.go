package store

import (
	"context"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Registry stores contents outside the hub.
type Registry interface {
	Push(ctx context.Context, access registry.Access, stored content.Stored) error
	Pull(ctx context.Context, access registry.Access, id string) (content.Manifest, error)
	Delete(ctx context.Context, access registry.Access, id string) error
}

// Keeper takes the files of Bundles that do not hold them: to the hub or to a registry. One process needs
// one Keeper: it keeps storing and dropping of the same artifact apart.
type Keeper struct {
	// Client writes Contents and Secrets.
	Client client.Client
	// Reader reads Secrets from the API server.
	Reader   client.Reader
	Registry Registry
	// Disabled leaves everything on the hub, whatever registry a source names.
	Disabled bool
	Now      func() time.Time

	stripes [16]sync.Mutex
	// kept is when each artifact was last stored.
	kept sync.Map
}

// Files are what has to be stored before a Bundle is written.
type Files struct {
	Stored content.Stored
	// Access is where they go; nil is the hub.
	Access *registry.Access
}

// Named returns the files without what they hold.
func (f *Files) Named() *Files {
	if f == nil {
		return nil
	}
	return &Files{Stored: content.Stored{ID: f.Stored.ID, Digest: f.Stored.Digest}, Access: f.Access}
}

// Access returns the registry for the bundles of a source: the one of the named Secret, or, when none is
// named, that of the Secret ocistorage where there is one. It is nil when contents stay on the hub.
func (k *Keeper) Access(ctx context.Context, namespace, name string) (*registry.Access, error) {
	if k.Disabled {
		return nil, nil
	}
	named := name != ""
	if !named {
		name = registry.DefaultSecret
	}
	var secret corev1.Secret
	err := k.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &secret)
	switch {
	case apierrors.IsNotFound(err) && !named:
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, fault.New(fault.Stalled, "SecretNotFound",
			"Secret %s/%s named for the registry of bundle contents does not exist; create it or correct the name", namespace, name)
	case err != nil:
		return nil, fmt.Errorf("read Secret %s/%s: %w", namespace, name, err)
	}
	access, err := registry.AccessOf(&secret)
	return &access, err
}

// Detach takes the files out of a Bundle that is not to hold them, and returns what to store; nil when they
// stay in it.
func Detach(bundle *fleet.Bundle, access *registry.Access) (*Files, error) {
	storage := fleet.ContentsOnHub
	if access != nil {
		storage = ""
	}
	stored, detached, err := content.Detach(bundle, storage)
	if err != nil || !detached {
		return nil, err
	}
	return &Files{Stored: stored, Access: access}, nil
}

// Keep stores the files of a bundle. Write the Bundle after it. Nil files are in the Bundle.
func (k *Keeper) Keep(ctx context.Context, bundle types.NamespacedName, files *Files) error {
	switch {
	case files == nil:
		return nil
	case files.Access == nil:
		if err := (Store{Client: k.Client, Now: k.Now}).Write(ctx, files.Stored); err != nil {
			return fmt.Errorf("store the files of bundle %s: %w", bundle, err)
		}
		return nil
	}
	lock := k.stripe(files.Stored.ID)
	lock.Lock()
	defer lock.Unlock()
	// The Secret first: it is the record by which an artifact is removed one day.
	if err := k.grant(ctx, bundle, files, true); err != nil {
		return err
	}
	if err := k.Registry.Push(ctx, *files.Access, files.Stored); err != nil {
		return fmt.Errorf("store the files of bundle %s: %w", bundle, err)
	}
	k.kept.Store(files.Stored.ID, k.Now())
	return nil
}

// Pull reads the files of a bundle from their registry, with the access that stands beside the bundle.
func (k *Keeper) Pull(ctx context.Context, namespace, id string) (content.Manifest, error) {
	var secret corev1.Secret
	if err := k.Reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: id}, &secret); err != nil {
		return content.Manifest{}, fmt.Errorf("read the access to the files of a bundle: %w", err)
	}
	access, err := registry.AccessOf(&secret)
	if err != nil {
		return content.Manifest{}, err
	}
	return k.Registry.Pull(ctx, access, id)
}

// Verify is Keep for a Bundle that is stored and stays as it is: nothing is written as long as all is there.
func (k *Keeper) Verify(ctx context.Context, bundle types.NamespacedName, files *Files) error {
	switch {
	case files == nil:
		return nil
	case files.Access == nil:
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(fleet.GroupVersion.WithKind("Content"))
		err := k.Reader.Get(ctx, types.NamespacedName{Name: files.Stored.ID}, object)
		if apierrors.IsNotFound(err) {
			return k.Keep(ctx, bundle, files)
		}
		if err != nil {
			return fmt.Errorf("look for the files of bundle %s: %w", bundle, err)
		}
		return nil
	}
	if err := k.Grant(ctx, bundle, files); err != nil {
		return err
	}
	if err := k.Registry.Push(ctx, *files.Access, files.Stored); err != nil {
		return fmt.Errorf("store the files of bundle %s: %w", bundle, err)
	}
	return nil
}

// Grant brings the Secret with the access to a bundle's contents up to date, which are stored already.
func (k *Keeper) Grant(ctx context.Context, bundle types.NamespacedName, files *Files) error {
	if files == nil || files.Access == nil {
		return nil
	}
	lock := k.stripe(files.Stored.ID)
	lock.Lock()
	defer lock.Unlock()
	return k.grant(ctx, bundle, files, false)
}

// grant writes the Secret when it differs; renew writes it in any case, so that it is not collected before
// the Bundle refers to it.
func (k *Keeper) grant(ctx context.Context, bundle types.NamespacedName, files *Files, renew bool) error {
	wanted := registry.SecretFor(bundle.Namespace, files.Stored.ID, bundle.Name, *files.Access)
	metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, fleet.NeededAnnotation, k.Now().UTC().Format(time.RFC3339))
	var current corev1.Secret
	err := k.Reader.Get(ctx, client.ObjectKeyFromObject(wanted), &current)
	switch {
	case apierrors.IsNotFound(err):
		err = k.Client.Create(ctx, wanted)
	case err != nil:
	case current.Type != wanted.Type:
		return fault.New(fault.Stalled, "SecretOwnedByOther", "bundle %s needs the Secret %s for its contents, and one of type %q is in its place; remove it",
			bundle, wanted.Name, current.Type)
	case !renew && registry.SameData(current.Data, wanted.Data):
		return nil
	default:
		current.Data, current.Labels, current.Annotations = wanted.Data, wanted.Labels, wanted.Annotations
		err = k.Client.Update(ctx, &current)
	}
	if err != nil {
		return fmt.Errorf("store the access to the files of bundle %s: %w", bundle, err)
	}
	return nil
}

// Fate is what becomes of an artifact and of the Secret it is recorded by.
type Fate int

// What a Secret and its artifact may come to.
const (
	KeepBoth Fate = iota
	// DropSecret leaves the artifact to another Secret.
	DropSecret
	DropBoth
)

// settling is how long what was kept stays whatever is decided: whoever decides may not see its user yet.
const settling = 10 * time.Second

// Drop removes an artifact and the Secret it is recorded by, as decide says of the Secret as it is now; it is
// asked when nobody else works on the artifact. With a wait nothing was done: call again after it.
func (k *Keeper) Drop(ctx context.Context, secret types.NamespacedName, decide func(*corev1.Secret) (Fate, error)) (wait time.Duration, err error) {
	lock := k.stripe(secret.Name)
	lock.Lock()
	defer lock.Unlock()
	if wait := settling - k.Now().Sub(k.lastKept(secret.Name)); wait > 0 {
		return wait, nil
	}
	var current corev1.Secret
	if err := k.Reader.Get(ctx, secret, &current); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	fate, err := decide(&current)
	if err != nil || fate == KeepBoth {
		return 0, err
	}
	if fate == DropBoth {
		access, err := registry.AccessOf(&current)
		if err == nil {
			err = k.Registry.Delete(ctx, access, current.Name)
		}
		if err != nil {
			return 0, fmt.Errorf("remove the files of bundle %s/%s: %w", current.Namespace, current.Labels[fleet.BundleLabel], err)
		}
	}
	err = k.Client.Delete(ctx, &current, client.Preconditions{UID: &current.UID, ResourceVersion: &current.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("delete Secret %s: %w", secret, err)
	}
	k.kept.Delete(secret.Name)
	return 0, nil
}

// lastKept returns when this process last stored an artifact.
func (k *Keeper) lastKept(id string) time.Time {
	at, _ := k.kept.Load(id)
	kept, _ := at.(time.Time)
	return kept
}

func (k *Keeper) stripe(id string) *sync.Mutex {
	return &k.stripes[crc32.ChecksumIEEE([]byte(id))%uint32(len(k.stripes))]
}
