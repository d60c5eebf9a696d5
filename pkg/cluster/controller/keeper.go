package controller

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// keeper makes objects be as they should. What it finds in order it does not write.
type keeper struct {
	cached client.Client
	live   client.Reader
}

// Keep creates an object or corrects it. One of that name that somebody else made is refused, not
// changed; while it or its namespace is being deleted the error is of class Waiting.
func (k keeper) Keep(ctx context.Context, wanted client.Object) error {
	current := wanted.DeepCopyObject().(client.Object)
	key := client.ObjectKeyFromObject(wanted)
	err := k.cached.Get(ctx, key, current)
	if apierrors.IsNotFound(err) {
		if err = k.cached.Create(ctx, wanted.DeepCopyObject().(client.Object)); err == nil {
			return nil
		}
		if apierrors.IsAlreadyExists(err) { // the cache is late, or the object lacks the label it is filtered by
			err = k.live.Get(ctx, key, current)
		}
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fault.New(fault.Waiting, "Terminating", "namespace %s is being deleted", wanted.GetNamespace())
	}
	if err != nil {
		return fmt.Errorf("keep %T %s: %w", wanted, key, err)
	}
	return k.correct(ctx, current, wanted)
}

func (k keeper) correct(ctx context.Context, current, wanted client.Object) error {
	key := client.ObjectKeyFromObject(wanted)
	if !mayTake(current, wanted) {
		return fault.New(fault.Stalled, "NameTaken", "%T %s exists and belongs to somebody else: remove or rename it", wanted, key)
	}
	if current.GetDeletionTimestamp() != nil {
		return fault.New(fault.Waiting, "Terminating", "%T %s is being deleted", wanted, key)
	}
	before := current.DeepCopyObject().(client.Object)
	if replaced := bringInOrder(current, wanted); replaced {
		if err := k.cached.Delete(ctx, before, client.Preconditions{UID: uidOf(before)}); err != nil {
			return fmt.Errorf("replace %T %s: %w", wanted, key, err)
		}
		if err := k.cached.Create(ctx, wanted.DeepCopyObject().(client.Object)); err != nil {
			return fmt.Errorf("replace %T %s: %w", wanted, key, err)
		}
		return nil
	}
	if equality.Semantic.DeepEqual(before, current) {
		return nil
	}
	if err := k.cached.Patch(ctx, current, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("correct %T %s: %w", wanted, key, err)
	}
	return nil
}

// Remove deletes an object made by Keep, if it is there.
func (k keeper) Remove(ctx context.Context, made client.Object) error {
	current := made.DeepCopyObject().(client.Object)
	key := client.ObjectKeyFromObject(made)
	err := k.cached.Get(ctx, key, current)
	if apierrors.IsNotFound(err) || err == nil && (current.GetDeletionTimestamp() != nil || !mayTake(current, made)) {
		return nil
	}
	if err == nil {
		err = client.IgnoreNotFound(k.cached.Delete(ctx, current, client.Preconditions{UID: uidOf(current)}))
	}
	if err != nil {
		return fmt.Errorf("remove %T %s: %w", made, key, err)
	}
	return nil
}

// mayTake says whether an object is the engine's to change: what has an owner must have the same one, or
// none while it is labelled as managed (as upstream leaves it), and what names somebody in an annotation
// must name the same.
func mayTake(current, wanted client.Object) bool {
	if owner := metav1.GetControllerOf(wanted); owner != nil {
		stored := metav1.GetControllerOf(current)
		if stored == nil {
			return current.GetLabels()[fleet.ManagedLabel] == "true"
		}
		return stored.UID == owner.UID
	}
	if metav1.GetControllerOf(current) != nil {
		return false
	}
	stored := current.GetAnnotations()
	for key, value := range wanted.GetAnnotations() {
		if other, there := stored[key]; there && other != value {
			return false
		}
	}
	return true
}

// bringInOrder changes current to what is wanted of it and leaves the rest. It returns true when that is
// not possible because a field cannot change.
func bringInOrder(current, wanted client.Object) (mustReplace bool) {
	current.SetLabels(merged(current.GetLabels(), wanted.GetLabels()))
	current.SetAnnotations(merged(current.GetAnnotations(), wanted.GetAnnotations()))
	if metav1.GetControllerOf(current) == nil && len(wanted.GetOwnerReferences()) > 0 {
		current.SetOwnerReferences(append(current.GetOwnerReferences(), wanted.GetOwnerReferences()...))
	}
	switch current := current.(type) {
	case *rbacv1.Role:
		current.Rules = wanted.(*rbacv1.Role).Rules
	case *rbacv1.RoleBinding:
		binding := wanted.(*rbacv1.RoleBinding)
		mustReplace = current.RoleRef != binding.RoleRef
		current.Subjects = binding.Subjects
	case *rbacv1.ClusterRoleBinding:
		binding := wanted.(*rbacv1.ClusterRoleBinding)
		mustReplace = current.RoleRef != binding.RoleRef
		current.Subjects = binding.Subjects
	case *corev1.Secret:
		secret := wanted.(*corev1.Secret)
		mustReplace = current.Type != secret.Type
		if secret.Data != nil { // a service account's token is filled in by the API server
			current.Data = secret.Data
		}
	case *corev1.ServiceAccount:
		current.AutomountServiceAccountToken = wanted.(*corev1.ServiceAccount).AutomountServiceAccountToken
	}
	return mustReplace
}

func merged(stored, wanted map[string]string) map[string]string {
	if len(wanted) == 0 {
		return stored
	}
	all := maps.Clone(stored)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, wanted)
	return all
}

func uidOf(object client.Object) *types.UID {
	uid := object.GetUID()
	return &uid
}
