package controller

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// execute carries a plan out and keeps going over siblings; the joined error names what failed.
func (r *Reconciler) execute(ctx context.Context, todo plan) error {
	var problems []error
	for _, bundle := range todo.create {
		problems = append(problems, r.create(ctx, bundle))
	}
	for _, bundle := range todo.update {
		problems = append(problems, r.update(ctx, bundle))
	}
	for _, bundle := range todo.delete {
		problems = append(problems, r.remove(ctx, bundle))
	}
	return errors.Join(problems...)
}

// create writes the values first: a Bundle must never be seen without the values it names.
func (r *Reconciler) create(ctx context.Context, want wanted) error {
	if err := r.writeValues(ctx, want); err != nil {
		return err
	}
	err := r.Client.Create(ctx, want.bundle.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		return fault.New(fault.Transient, "BundleExists", "create bundle %s/%s: it appeared meanwhile", want.bundle.Namespace, want.bundle.Name)
	}
	return refused("create", want.bundle, err)
}

func (r *Reconciler) update(ctx context.Context, want wanted) error {
	if err := r.writeValues(ctx, want); err != nil {
		return err
	}
	var current fleet.Bundle
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(want.bundle), &current); err != nil {
		return fmt.Errorf("read bundle %s/%s: %w", want.bundle.Namespace, want.bundle.Name, err)
	}
	if current.Labels[fleet.RepoLabel] != want.bundle.Labels[fleet.RepoLabel] {
		return fault.New(fault.Stalled, "BundleOwnedByOther", "bundle %s now belongs to %s", want.bundle.Name, owner(&current))
	}
	current.Labels = want.bundle.Labels
	for key, value := range want.bundle.Annotations {
		metav1.SetMetaDataAnnotation(&current.ObjectMeta, key, value)
	}
	current.Spec = want.bundle.Spec
	return refused("update", want.bundle, r.Client.Update(ctx, &current))
}

func (r *Reconciler) remove(ctx context.Context, bundle *fleet.Bundle) error {
	err := r.Client.Delete(ctx, bundle, client.Preconditions{UID: &bundle.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	return nil
}

// writeValues stores the values Secret of a bundle, or removes the one left from earlier values.
func (r *Reconciler) writeValues(ctx context.Context, want wanted) error {
	key := client.ObjectKeyFromObject(want.bundle)
	var current corev1.Secret
	err := r.Reader.Get(ctx, key, &current)
	exists := err == nil
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read values of bundle %s: %w", key, err)
	}
	if exists && current.Type != fleet.BundleValuesSecretType {
		if len(want.values) == 0 {
			return nil
		}
		return fault.New(fault.Stalled, "SecretOwnedByOther",
			"bundle %s needs a Secret of its own name for its Helm values, and one of type %q is in its place; rename the Secret or the bundle", key, current.Type)
	}
	switch {
	case len(want.values) == 0 && exists:
		err = client.IgnoreNotFound(r.Client.Delete(ctx, &current))
	case len(want.values) == 0:
		return nil
	case !exists:
		err = r.Client.Create(ctx, valuesSecret(want))
	case !equalData(current.Data, want.values):
		current.Data = want.values
		err = r.Client.Update(ctx, &current)
	}
	if err != nil {
		return fmt.Errorf("write values of bundle %s: %w", key, err)
	}
	return nil
}

func valuesSecret(want wanted) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: want.bundle.Namespace,
			Name:      want.bundle.Name,
			Labels:    map[string]string{fleet.RepoLabel: want.bundle.Labels[fleet.RepoLabel]},
		},
		Type: fleet.BundleValuesSecretType,
		Data: want.values,
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
