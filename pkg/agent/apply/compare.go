package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Compare returns the verdict on a live object: at once when it looks as it did when it was last in
// sync, else by a dry run.
func (w *Writer) Compare(ctx context.Context, claim ownership.Claim, desired, live *unstructured.Unstructured, rules diff.Rules) diff.Verdict {
	if strategy := manifest.StrategyOf(desired); strategy == fleet.ApplyReadOnly || strategy == fleet.ApplyCreateOnly {
		return diff.Verdict{State: diff.InSync} // that it is there is all that is wanted
	}
	if claim.Owns(live) && w.memory.Excepted(claim.SetHash, desired, live, rules.ID()) {
		return diff.Verdict{State: diff.InSync}
	}
	if err := claim.Check(live); err != nil {
		return diff.Verdict{State: diff.Foreign, Reason: ownership.Owner(live)}
	}
	restored, err := w.restored(ctx, desired, live)
	if apierrors.IsInvalid(err) {
		// A part that differs cannot be changed in place.
		if verdict := diff.Compare(live, overlaid(live, desired), rules); verdict.State == diff.Modified {
			return verdict
		}
	}
	if err != nil {
		return diff.Verdict{State: diff.Unknown, Reason: fmt.Sprintf("compare %s: %v", manifest.KeyOf(desired), err)}
	}
	verdict := diff.Compare(live, restored, rules)
	if verdict.State == diff.InSync && restored.GetResourceVersion() == live.GetResourceVersion() {
		w.memory.Remember(claim.SetHash, desired, live, false)
		if diff.Compare(live, restored, diff.Rules{}).State != diff.InSync {
			w.memory.Except(claim.SetHash, desired, rules.ID())
		}
	}
	return verdict
}

// overlaid returns the live object with what is wanted in place of what it has.
func overlaid(live, desired *unstructured.Unstructured) *unstructured.Unstructured {
	result := live.DeepCopy()
	overlay(result.Object, desired.DeepCopy().Object)
	return result
}

func overlay(into, from map[string]any) {
	for key, value := range from {
		inner, ok := value.(map[string]any)
		if there, also := into[key].(map[string]any); ok && also {
			overlay(there, inner)
			continue
		}
		into[key] = value
	}
}

// restored returns what the live object would be if desired were written again.
func (w *Writer) restored(ctx context.Context, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	how, err := planFor(desired)
	if err != nil {
		return nil, err
	}
	if desired, err = w.adapted(ctx, how, live, Options{Restore: true}); err != nil {
		return nil, err
	}
	resource, err := w.resource(desired, nil)
	if err != nil {
		return nil, err
	}
	applied, err := serverSideApply(ctx, resource, desired, true, true)
	if !cannotApply(err) {
		return applied, err
	}
	patch, err := threeWayPatch(desired, desired, live)
	if err != nil || string(patch) == "{}" {
		return live, err
	}
	// The server fills in defaults, which a patch that replaces lists takes away.
	return resource.Patch(ctx, live.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: FieldManager, DryRun: []string{metav1.DryRunAll}})
}
