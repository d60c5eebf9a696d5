package bundles

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// Execute carries a plan out and keeps going over siblings; the joined error names what failed. Nothing is
// deleted unless everything else worked: what leaves may have moved to where it could not be stored. It
// returns the digests of the Bundles it wrote, as they were stored.
func (s *Store) Execute(ctx context.Context, todo Plan) (map[string]string, error) {
	written := map[string]string{}
	var problems []error
	for _, bundle := range todo.inOrder() {
		stored, err := s.store(ctx, bundle)
		if err == nil {
			written[bundle.Bundle.Name] = digestOf(stored, bundle.Summary)
		}
		problems = append(problems, err)
	}
	for _, bundle := range todo.repair {
		bundle, err := bundle.whole(ctx)
		if err == nil {
			_, err = s.writeParts(ctx, bundle)
		}
		problems = append(problems, err)
	}
	for _, bundle := range todo.grant {
		problems = append(problems, s.Keeper.Grant(ctx, client.ObjectKeyFromObject(bundle.Bundle), bundle.Files))
	}
	problems = append(problems, errTerminating(todo.terminating))
	if err := errors.Join(problems...); err != nil {
		return written, err
	}
	for _, bundle := range todo.Delete {
		problems = append(problems, s.remove(ctx, bundle))
	}
	return written, errors.Join(problems...)
}

// store creates or updates a Bundle and returns it as it was stored.
func (s *Store) store(ctx context.Context, bundle toStore) (*fleet.Bundle, error) {
	whole, err := bundle.whole(ctx)
	if err != nil {
		return nil, err
	}
	if bundle.exists {
		return s.update(ctx, whole)
	}
	return s.create(ctx, whole)
}

// digestOf digests a Bundle as the API server answered it: what the server made of it is what the cache
// will show, and must not look like somebody's edit.
func digestOf(stored *fleet.Bundle, wanted content.Summary) string {
	summary, err := content.Summarize(stored.Spec)
	if err != nil {
		return wanted.SpecDigest
	}
	return summary.SpecDigest
}

// writeParts writes what a Bundle needs and does not hold, before it: a Bundle must never be seen without the
// files and values it names. undo takes the values back; files that nobody refers to are collected.
func (s *Store) writeParts(ctx context.Context, want Wanted) (undo func(context.Context) error, err error) {
	if err := s.Keeper.Keep(ctx, client.ObjectKeyFromObject(want.Bundle), want.Files); err != nil {
		return nil, err
	}
	return s.writeValues(ctx, want)
}

func (s *Store) create(ctx context.Context, want Wanted) (*fleet.Bundle, error) {
	undo, err := s.writeParts(ctx, want)
	if err != nil {
		return nil, err
	}
	object := want.Bundle.DeepCopy()
	err = s.Client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		return nil, fault.New(fault.Transient, "BundleExists", "create bundle %s/%s: it appeared meanwhile", want.Bundle.Namespace, want.Bundle.Name)
	}
	return object, s.undone(ctx, undo, refused("create", want.Bundle, err))
}

func (s *Store) update(ctx context.Context, want Wanted) (*fleet.Bundle, error) {
	var current fleet.Bundle
	if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(want.Bundle), &current); err != nil {
		return nil, fmt.Errorf("read bundle %s/%s: %w", want.Bundle.Namespace, want.Bundle.Name, err)
	}
	if current.Labels[fleet.RepoLabel] != want.Bundle.Labels[fleet.RepoLabel] {
		return nil, ownedByOther(want.Bundle.Name, current.Labels)
	}
	undo, err := s.writeParts(ctx, want)
	if err != nil {
		return nil, err
	}
	current.Labels = want.Bundle.Labels
	for key, value := range want.Bundle.Annotations {
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, key, value)
	}
	target.KeepAccepted(&current, want.Bundle.Spec)
	current.Spec = *want.Bundle.Spec.DeepCopy()
	err = s.Client.Update(ctx, &current)
	return &current, s.undone(ctx, undo, refused("update", want.Bundle, err))
}

// undone puts values back whose Bundle the API server refuses, so that those of the present one stay.
func (s *Store) undone(ctx context.Context, undo func(context.Context) error, err error) error {
	if err == nil || !fault.NeedsPerson(err) {
		return err
	}
	if failed := undo(ctx); failed != nil {
		return fmt.Errorf("%w (and its values were not put back: %w)", err, failed)
	}
	return err
}

// remove deletes a Bundle that still is what was seen of it: somebody else's by now is not touched.
func (s *Store) remove(ctx context.Context, bundle *fleet.Bundle) error {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(fleet.GroupVersion.WithKind("Bundle"))
	err := s.Reader.Get(ctx, client.ObjectKeyFromObject(bundle), now)
	if err == nil && now.Labels[fleet.RepoLabel] != bundle.Labels[fleet.RepoLabel] {
		return nil
	}
	if err == nil {
		err = s.Client.Delete(ctx, bundle, client.Preconditions{UID: &bundle.UID, ResourceVersion: &now.ResourceVersion})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	return nil
}

// writeValues stores the values Secret of a bundle, or removes the one left from earlier values. undo puts
// back what was there.
func (s *Store) writeValues(ctx context.Context, want Wanted) (undo func(context.Context) error, err error) {
	key := client.ObjectKeyFromObject(want.Bundle)
	var current corev1.Secret
	err = s.Reader.Get(ctx, key, &current)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read values of bundle %s: %w", key, err)
	}
	exists := err == nil
	step, err := planValues(want, &current, exists)
	if err == nil && step != valuesKeep && exists {
		err = s.checkOwner(ctx, want, &current)
	}
	if err != nil {
		return nil, err
	}
	undo = func(context.Context) error { return nil }
	switch step {
	case valuesDelete:
		err = client.IgnoreNotFound(s.Client.Delete(ctx, &current, client.Preconditions{UID: &current.UID}))
		undo = func(ctx context.Context) error { return s.Client.Create(ctx, copyOf(&current)) }
	case valuesCreate:
		created := valuesSecret(want)
		err = s.Client.Create(ctx, created)
		undo = func(ctx context.Context) error { return client.IgnoreNotFound(s.Client.Delete(ctx, created)) }
	case valuesUpdate:
		changed := current.DeepCopy()
		changed.Data, changed.Labels = want.Values, valuesSecret(want).Labels
		err = s.Client.Update(ctx, changed)
		undo = func(ctx context.Context) error {
			changed.Data, changed.Labels = current.Data, current.Labels
			return s.Client.Update(ctx, changed)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("write values of bundle %s: %w", key, err)
	}
	return undo, nil
}

// valuesStep is what to do with a values Secret.
type valuesStep int

const (
	valuesKeep valuesStep = iota
	valuesCreate
	valuesUpdate
	valuesDelete
)

// planValues compares the Secret of a bundle's name with the wanted values.
func planValues(want Wanted, current *corev1.Secret, exists bool) (valuesStep, error) {
	switch {
	case !exists && len(want.Values) == 0:
		return valuesKeep, nil
	case !exists:
		return valuesCreate, nil
	case current.Type != fleet.BundleValuesSecretType && len(want.Values) == 0:
		return valuesKeep, nil
	case current.Type != fleet.BundleValuesSecretType:
		return valuesKeep, fault.New(fault.Stalled, "SecretOwnedByOther",
			"bundle %s/%s needs a Secret of its own name for its Helm values, and one of type %q is in its place; rename the Secret or the bundle",
			want.Bundle.Namespace, want.Bundle.Name, current.Type)
	case len(want.Values) == 0:
		return valuesDelete, nil
	case !equalData(current.Data, want.Values):
		return valuesUpdate, nil
	}
	return valuesKeep, nil
}

// checkOwner refuses to touch the values of another's Bundle. A Secret that no Bundle belongs to was left
// by a pass that did not live to make one.
func (s *Store) checkOwner(ctx context.Context, want Wanted, current *corev1.Secret) error {
	if current.Labels[fleet.RepoLabel] == want.Bundle.Labels[fleet.RepoLabel] {
		return nil
	}
	bundle := &metav1.PartialObjectMetadata{}
	bundle.SetGroupVersionKind(fleet.GroupVersion.WithKind("Bundle"))
	err := s.Reader.Get(ctx, client.ObjectKeyFromObject(want.Bundle), bundle)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read bundle %s/%s: %w", want.Bundle.Namespace, want.Bundle.Name, err)
	case bundle.Labels[fleet.RepoLabel] != want.Bundle.Labels[fleet.RepoLabel]:
		return ownedByOther(want.Bundle.Name, bundle.Labels)
	}
	return nil
}

// copyOf returns a Secret that can be created anew.
func copyOf(secret *corev1.Secret) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name, Labels: secret.Labels},
		Type:       secret.Type,
		Data:       secret.Data,
	}
}

func valuesSecret(want Wanted) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: want.Bundle.Namespace,
			Name:      want.Bundle.Name,
			Labels:    map[string]string{fleet.RepoLabel: want.Bundle.Labels[fleet.RepoLabel]},
		},
		Type: fleet.BundleValuesSecretType,
		Data: want.Values,
	}
}

func equalData(a, b map[string][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for key, value := range a {
		other, ok := b[key]
		if !ok || string(other) != string(value) {
			return false
		}
	}
	return true
}

// refused classifies the API server's answer to a bundle: what it finds invalid only a person can mend.
func refused(verb string, bundle *fleet.Bundle, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s bundle %s/%s: %w", verb, bundle.Namespace, bundle.Name, err)
	if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsBadRequest(err) {
		return fault.Wrap(fault.Stalled, "BundleInvalid", wrapped)
	}
	return wrapped
}
