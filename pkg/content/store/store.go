package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// ReasonRefused is the reason of the error when the API server does not take a Content as it is.
const ReasonRefused = "ContentRefused"

// Client is what a Store needs of an API server.
type Client interface {
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
	Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error
}

// Store writes contents. It is safe for concurrent use.
type Store struct {
	Client Client
	Now    func() time.Time
}

// Write stores a manifest under its id. When it returns nil, all of it is there and is not collected before
// somebody had the time to refer to it.
func (s Store) Write(ctx context.Context, stored content.Stored) error {
	objects, err := stored.Objects()
	if err != nil {
		return err
	}
	if len(objects.Chunks) > 0 {
		// A head means that its chunks are there, and sending them once more takes long.
		if there, err := s.touch(ctx, stored.ID); there || err != nil {
			return err
		}
	}
	for _, object := range append(objects.Chunks, objects.Head) {
		if err := s.put(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// attempts bounds how often an object may vanish between two requests.
const attempts = 3

func (s Store) put(ctx context.Context, object *fleet.Content) error {
	for range attempts {
		err := s.Client.Create(ctx, object.DeepCopy())
		if err == nil {
			return nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return refused(object.Name, err)
		}
		if there, err := s.touch(ctx, object.Name); there || err != nil {
			return err
		}
	}
	return fault.New(fault.Transient, "ContentVanished", "store content %s: it comes and goes", object.Name)
}

// touch says in a Content that somebody relies on it, and whether it is there. The collector deletes only
// the version that it has looked at.
func (s Store) touch(ctx context.Context, name string) (bool, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{fleet.NeededAnnotation: s.Now().UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return false, err
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(fleet.GroupVersion.WithKind("Content"))
	object.Name = name
	switch err := s.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, refused(name, err)
	}
	return true, nil
}

// maxAnswer is how much of the API server's answer is shown.
const maxAnswer = 500

// refused gives the API server's answer its class: what it finds wrong with a Content does not mend itself.
func refused(name string, err error) error {
	if apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		// The message may repeat the object, which is what is too large for one.
		return fault.New(fault.Stalled, ReasonRefused, "store content %s: %s", name, status.Cut(err.Error(), maxAnswer))
	}
	return fmt.Errorf("store content %s: %w", name, err)
}

// Read returns the manifest of an id.
func Read(ctx context.Context, reader client.Reader, id string) (content.Manifest, error) {
	get := func(name string) (*fleet.Content, error) {
		object := &fleet.Content{}
		if err := reader.Get(ctx, types.NamespacedName{Name: name}, object); err != nil {
			return nil, fmt.Errorf("get content %s: %w", name, err)
		}
		return object, nil
	}
	head, err := get(id)
	if err != nil {
		return content.Manifest{}, err
	}
	return content.Load(head, get)
}

// NeededAt returns when somebody said last that a Content is needed; zero if nobody did.
func NeededAt(annotations map[string]string) time.Time {
	at, err := time.Parse(time.RFC3339, annotations[fleet.NeededAnnotation])
	if err != nil {
		return time.Time{}
	}
	return at
}
