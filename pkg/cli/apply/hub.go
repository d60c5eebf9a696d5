package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/cli/stream"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/depends"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// hub writes Bundles to a hub.
type hub struct {
	client  client.Client
	session *session.Session
	retries int
	keeper  *store.Keeper
	// registry takes the contents; nil leaves them on the hub.
	registry *registry.Access
}

// write brings the hub to what is read, each Bundle as it comes. Bundles that could not be read do not keep the
// others from being written, but as long as there are any nothing is removed.
func (f *flags) write(ctx context.Context, s *session.Session, name string, read reading) error {
	h, err := f.hub(ctx, s)
	if err != nil {
		return err
	}
	limit := f.concurrency
	if limit <= 0 {
		limit = defaultConcurrency
	}
	kept := map[string]bool{}
	var group errgroup.Group
	group.SetLimit(limit)
	var problems []*error
	var waiting []bundle.Bundle
	result, readErr := read(func(made bundle.Bundle) error {
		kept[made.Object.Name] = true
		if len(made.Object.Spec.DependsOn) > 0 && !stream.IsLarge(made.Object) {
			waiting = append(waiting, made)
			return nil
		}
		problem := new(error)
		problems = append(problems, problem)
		group.Go(func() error {
			// Each keeps its own, so that one does not hide another.
			*problem = h.apply(ctx, made)
			return nil
		})
		if stream.IsLarge(made.Object) {
			return group.Wait() // nobody needs two of them in memory
		}
		return nil
	})
	_ = group.Wait()
	err = readErr
	for _, problem := range problems {
		err = errors.Join(err, *problem)
	}
	// What others wait for is written before them, so that the hub plans it before them.
	for _, made := range depends.Order(waiting, func(one bundle.Bundle) *fleet.Bundle { return one.Object }) {
		err = errors.Join(err, h.apply(ctx, made))
	}
	if result != nil {
		warn(s, result)
	}
	switch {
	case err != nil:
		return err
	case f.file != "" || name == "":
		return nil
	case !result.Complete():
		s.Warn("nothing is removed, because not every path could be read")
		return nil
	}
	return h.prune(ctx, s.Namespace(session.LocalNamespace), name, kept)
}

func (f *flags) hub(ctx context.Context, s *session.Session) (*hub, error) {
	connection, err := s.Client()
	if err != nil {
		return nil, err
	}
	h := &hub{client: connection, session: s, retries: number(s.Env.ConflictRetries, defaultRetries)}
	h.keeper = &store.Keeper{
		Client: connection, Reader: connection, Registry: registry.Client{Proxy: s.Env.Proxy}, Disabled: s.Env.NoRegistries, Now: s.Now,
	}
	h.registry, err = h.keeper.Access(ctx, s.Namespace(session.LocalNamespace), f.ociRegistrySecret)
	return h, err
}

// apply writes one Bundle and what belongs to it, again when somebody else wrote it meanwhile.
func (h *hub) apply(ctx context.Context, wanted bundle.Bundle) error {
	backoff := retry.DefaultRetry
	backoff.Steps = h.retries
	files, err := store.Detach(wanted.Object, h.registry)
	if err != nil {
		return err
	}
	var done action
	err = retry.RetryOnConflict(backoff, func() error {
		var err error
		done, err = h.applyOnce(ctx, wanted, files)
		return err
	})
	if err != nil {
		return err
	}
	if done != unchanged {
		h.session.Say("bundle %s/%s %s", wanted.Object.Namespace, wanted.Object.Name, done)
	}
	for _, scan := range wanted.ImageScans {
		if err := h.applyScan(ctx, scan); err != nil {
			return err
		}
	}
	return nil
}

func (h *hub) applyOnce(ctx context.Context, wanted bundle.Bundle, files *store.Files) (action, error) {
	object := wanted.Object
	key := client.ObjectKeyFromObject(object)
	current := &fleet.Bundle{}
	if err := h.client.Get(ctx, key, current); apierrors.IsNotFound(err) {
		current = nil
	} else if err != nil {
		return "", fmt.Errorf("read bundle %s: %w", key, err)
	}
	if current != nil && bundle.KeepsPaused(current, object) {
		object = object.DeepCopy()
		object.Spec.Paused = true
		h.session.Say("bundle %s/%s stays paused, as a person wants it; `fleet rollout resume bundle %s` ends that", key.Namespace, key.Name, key.Name)
	}
	what, err := decide(object, current)
	if err != nil {
		return "", err
	}
	keep := h.keeper.Keep
	if what == unchanged {
		keep = h.keeper.Verify
	}
	if err := keep(ctx, key, files); err != nil {
		return "", err
	}
	if err := h.writeValues(ctx, wanted); err != nil {
		return "", err
	}
	switch what {
	case create:
		err = h.client.Create(ctx, object.DeepCopy())
	case update:
		current.Labels = maps.Clone(object.Labels)
		for name, value := range object.Annotations {
			metav1.SetMetaDataAnnotation(&current.ObjectMeta, name, value)
		}
		target.KeepAccepted(current, object.Spec)
		current.Spec = object.Spec
		err = h.client.Update(ctx, current)
	}
	if err != nil {
		return "", fmt.Errorf("write bundle %s: %w", key, err)
	}
	return what, nil
}

// writeValues stores the values Secret before the Bundle that names its digest, or removes one left over.
func (h *hub) writeValues(ctx context.Context, wanted bundle.Bundle) error {
	if wanted.Object.Spec.ValuesHash != "" && wanted.Values == nil {
		// A Bundle from a file that was read from a hub: its Secret is there already.
		return nil
	}
	key := client.ObjectKeyFromObject(wanted.Object)
	current := &corev1.Secret{}
	err := h.client.Get(ctx, key, current)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read values of bundle %s: %w", key, err)
	}
	if exists && current.Type != fleet.BundleValuesSecretType {
		if len(wanted.Values) == 0 {
			return nil
		}
		return fault.New(fault.Stalled, "SecretOwnedByOther", "bundle %s needs a Secret of its own name for its Helm values, and one of type %q is in its place; rename the Secret or the bundle", key, current.Type)
	}
	switch {
	case len(wanted.Values) == 0 && exists:
		err = client.IgnoreNotFound(h.client.Delete(ctx, current))
	case len(wanted.Values) == 0:
		return nil
	case !exists:
		err = h.client.Create(ctx, valuesSecret(wanted))
	case !equalData(current.Data, wanted.Values):
		current.Data = wanted.Values
		err = h.client.Update(ctx, current)
	}
	if err != nil {
		return fmt.Errorf("write values of bundle %s: %w", key, err)
	}
	return nil
}

func valuesSecret(wanted bundle.Bundle) *corev1.Secret {
	secret := &corev1.Secret{Type: fleet.BundleValuesSecretType, Data: wanted.Values}
	secret.Namespace, secret.Name = wanted.Object.Namespace, wanted.Object.Name
	if repo := wanted.Object.Labels[fleet.RepoLabel]; repo != "" {
		secret.Labels = map[string]string{fleet.RepoLabel: repo}
	}
	return secret
}

func equalData(a, b map[string][]byte) bool {
	return maps.EqualFunc(a, b, func(x, y []byte) bool { return string(x) == string(y) })
}

func (h *hub) applyScan(ctx context.Context, wanted *fleet.ImageScan) error {
	key := client.ObjectKeyFromObject(wanted)
	current := &fleet.ImageScan{}
	err := h.client.Get(ctx, key, current)
	switch {
	case apierrors.IsNotFound(err):
		err = h.client.Create(ctx, wanted.DeepCopy())
	case err == nil:
		before := current.DeepCopy()
		current.Spec, current.Labels = wanted.Spec, wanted.Labels
		err = h.client.Patch(ctx, current, client.MergeFrom(before))
	}
	if err != nil {
		return fmt.Errorf("write image scan %s: %w", key, err)
	}
	return nil
}

// prune removes the owner's Bundles that its folders no longer give.
func (h *hub) prune(ctx context.Context, namespace, name string, kept map[string]bool) error {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleList"))
	if err := h.client.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{fleet.RepoLabel: name}); err != nil {
		return fmt.Errorf("list bundles of %s/%s: %w", namespace, name, err)
	}
	var problems []error
	for i := range list.Items {
		item := &list.Items[i]
		if kept[item.Name] || !item.DeletionTimestamp.IsZero() {
			continue
		}
		err := h.client.Delete(ctx, item, client.Preconditions{UID: &item.UID})
		if client.IgnoreNotFound(err) != nil {
			problems = append(problems, fmt.Errorf("delete bundle %s/%s: %w", item.Namespace, item.Name, err))
			continue
		}
		h.session.Say("bundle %s/%s deleted", item.Namespace, item.Name)
	}
	return errors.Join(problems...)
}
