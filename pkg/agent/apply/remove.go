package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/fairlead-dev/fairlead/pkg/agent/await"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
)

// Delete removes an object if it carries the claim's mark, or, for a hook, no other owner's. It returns
// whether it was there to be removed. A kind that is gone has no objects; one that is only looked at stays.
func (w *Writer) Delete(ctx context.Context, object *unstructured.Unstructured, claim ownership.Claim, known Knowledge, policy metav1.DeletionPropagation) (bool, error) {
	if manifest.IsReadOnly(object) {
		return false, nil
	}
	resource, err := w.resource(object, nil)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", manifest.KeyOf(object), err)
	}
	if removeKnown(ctx, resource, known.of(object), claim, policy) {
		w.memory.Drop(claim.SetHash, manifest.KeyOf(object))
		return true, nil
	}
	live, err := get(ctx, resource, object.GetName())
	if err != nil {
		return false, fmt.Errorf("delete %s: %w", manifest.KeyOf(object), classify(err))
	}
	if live == nil || live.GetDeletionTimestamp() != nil {
		return false, nil
	}
	mine := claim.Owns(live)
	if manifest.IsHook(object) {
		mine = claim.CheckHook(live) == nil
	}
	if !mine {
		return false, nil
	}
	if err := remove(ctx, resource, live, policy); err != nil {
		return false, fmt.Errorf("delete %s: %w", manifest.KeyOf(object), classify(err))
	}
	w.memory.Drop(claim.SetHash, manifest.KeyOf(object))
	return true, nil
}

// remove deletes exactly the object that was looked at.
func remove(ctx context.Context, resource dynamic.ResourceInterface, live *unstructured.Unstructured, policy metav1.DeletionPropagation) error {
	uid := live.GetUID()
	err := resource.Delete(ctx, live.GetName(), metav1.DeleteOptions{
		PropagationPolicy: &policy,
		Preconditions:     &metav1.Preconditions{UID: &uid},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// WaitGone returns when the object does not exist any more.
func (w *Writer) WaitGone(ctx context.Context, object *unstructured.Unstructured, timeout time.Duration) error {
	resource, err := w.resource(object, nil)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return await.Gone(ctx, resource, object, timeout)
}

// WaitFor returns when the condition holds for the live object, which is nil while there is none.
// The condition's own error ends the wait. What names the condition: "is ready".
func (w *Writer) WaitFor(ctx context.Context, object *unstructured.Unstructured, timeout time.Duration, what string, condition func(live *unstructured.Unstructured) (bool, error)) error {
	resource, err := w.resource(object, nil)
	if err != nil {
		return err
	}
	return await.Until(ctx, resource, object, timeout, what, condition)
}
