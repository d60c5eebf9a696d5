package await

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Until returns when the condition holds for the live object, which is nil while there is none. The condition's
// own error ends the wait; so does the timeout, and, as an error of class fault.Stalled, a member that does not let
// the identity look. What names the condition in errors: "is ready".
func Until(ctx context.Context, resource dynamic.ResourceInterface, object *unstructured.Unstructured, timeout time.Duration, what string, condition func(*unstructured.Unstructured) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	byName := fields.OneTermEqualSelector("metadata.name", object.GetName()).String()
	var denied atomic.Pointer[error]
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = byName
			list, err := resource.List(ctx, options)
			if apierrors.IsForbidden(err) {
				denied.Store(&err)
				cancel() // asking again changes nothing
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = byName
			return resource.Watch(ctx, options)
		},
	}
	listed := func(store cache.Store) (bool, error) {
		if len(store.List()) > 0 {
			return false, nil // the watch tells of it
		}
		return condition(nil)
	}
	_, err := watchtools.UntilWithSync(ctx, source, &unstructured.Unstructured{}, listed, func(event watch.Event) (bool, error) {
		if event.Type == watch.Deleted {
			return condition(nil)
		}
		live, _ := event.Object.(*unstructured.Unstructured)
		return condition(live)
	})
	if refusal := denied.Load(); refusal != nil {
		return fault.Wrap(fault.Stalled, string(metav1.StatusReasonForbidden), fmt.Errorf("wait until %s %s: %w", manifest.KeyOf(object), what, *refusal))
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("gave up after %s waiting until %s %s: %w", timeout, manifest.KeyOf(object), what, err)
	}
	return err
}

// Gone returns when the object does not exist any more, or another has its name. An object without UID stands for
// any with its name.
func Gone(ctx context.Context, resource dynamic.ResourceInterface, object *unstructured.Unstructured, timeout time.Duration) error {
	uid := object.GetUID()
	return Until(ctx, resource, object, timeout, "is gone", func(live *unstructured.Unstructured) (bool, error) {
		return live == nil || uid != "" && live.GetUID() != uid, nil
	})
}
