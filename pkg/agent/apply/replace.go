package apply

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fairlead-dev/fairlead/pkg/agent/await"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const (
	// ReasonNotReplaced means that an object cannot be changed in place, and that to delete it would delete data.
	ReasonNotReplaced = "NotReplaced"
	// ReasonTerminating means that an object which is wanted is still being deleted.
	ReasonTerminating = "Terminating"
)

// goneTimeout bounds the wait for an object that has to be gone before it can be created again. What takes longer
// is told, and tried again.
const goneTimeout = 2 * time.Second

// precious kinds hold what cannot be made anew: they are never deleted to be changed.
var precious = []schema.GroupKind{manifest.CustomResourceDefinition, manifest.Namespace, {Kind: "PersistentVolumeClaim"}, {Kind: "PersistentVolume"}}

// forbidsChange matches what API servers say of a value that would be right, were it not another one than before.
var forbidsChange = regexp.MustCompile(`immutable|may not (be )?chang|cannot (be )?chang|may not be (unset|updated)|updates? .*forbidden`)

// replace deletes and creates an object that cannot be changed in place. What could not be created stays.
func replace(ctx context.Context, resource dynamic.ResourceInterface, how plan, live *unstructured.Unstructured, refusal error) (Result, error) {
	if slices.Contains(precious, live.GroupVersionKind().GroupKind()) {
		return Result{}, fault.New(fault.Stalled, ReasonNotReplaced, "it is not replaced by force, which would delete what it holds: %w", refusal)
	}
	if !mayCreate(ctx, resource, how.desired, refusal) {
		return Result{}, refusal
	}
	if err := remove(ctx, resource, live, metav1.DeletePropagationBackground); err != nil {
		return Result{}, err
	}
	if live, err := cleared(ctx, resource, live); err != nil || live != nil {
		return Result{}, errors.Join(err, refusalOf(live))
	}
	created, err := serverSideApply(ctx, resource, how.desired, how.forces(), false)
	return Result{Object: created, Action: Replaced}, err
}

// refusalOf says that somebody was faster than a replacement.
func refusalOf(live *unstructured.Unstructured) error {
	if live == nil {
		return nil
	}
	return fault.New(fault.Transient, "Recreated", "%s was created again by somebody else", manifest.KeyOf(live))
}

// mayCreate says whether an object whose change was refused would be accepted as a new one: when nothing but the
// change was refused, or when another one like it would be created.
func mayCreate(ctx context.Context, resource dynamic.ResourceInterface, desired *unstructured.Unstructured, refusal error) bool {
	var status apierrors.APIStatus
	if errors.As(refusal, &status) && status.Status().Details != nil {
		causes := status.Status().Details.Causes
		valid := func(cause metav1.StatusCause) bool { return forbidsChange.MatchString(cause.Message) }
		if len(causes) > 0 && !slices.ContainsFunc(causes, func(cause metav1.StatusCause) bool { return !valid(cause) }) {
			return true
		}
	}
	other := desired.DeepCopy()
	other.SetName(strings.TrimRight(desired.GetName()[:min(len(desired.GetName()), 50)], "-.") + "-new")
	_, err := serverSideApply(ctx, resource, other, true, true)
	return err == nil
}

// cleared returns what has the name of an object that is being deleted, nil for nothing, when that object is gone.
// One that stays for longer is an error that names the finalizers it waits for.
func cleared(ctx context.Context, resource dynamic.ResourceInterface, leaving *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	waited := await.Gone(ctx, resource, leaving, goneTimeout)
	if waited != nil && ctx.Err() != nil {
		return nil, waited
	}
	live, err := get(ctx, resource, leaving.GetName())
	if err != nil || live == nil || live.GetUID() != leaving.GetUID() {
		return live, err
	}
	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		return nil, fault.New(fault.Waiting, ReasonTerminating, "the old object is still being deleted and waits for %s", strings.Join(finalizers, ", "))
	}
	return nil, fault.New(fault.Waiting, ReasonTerminating, "the old object is still being deleted")
}
