package controller

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/delivery"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/merge/carrier"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// observe says in a status what a pass found out. It is pure.
func observe(bundle *fleet.Bundle, pass outcome, rollup tally.Rollup, now time.Time) fleet.BundleStatus {
	summary, _ := content.SummaryOf(bundle)
	input := parent.BundleInput{
		Previous:           bundle.Status,
		Generation:         bundle.Generation,
		Rollup:             rollup,
		Err:                pass.err,
		ResourcesSHA256Sum: summary.Digest,
	}
	if !pass.observed() {
		// A retry must still know that it carries out a person's edit.
		input.Generation = bundle.Status.ObservedGeneration
	}
	if pass.planned {
		input.Rollout = rolloutOf(pass.plan)
		input.Problems = problemsOf(pass.plan)
		input.Held = heldOf(pass.plan, pass.current)
		input.Merged = mergedOf(bundle, pass)
	}
	next := parent.Bundle(input, now)
	if pass.planned && pass.observed() && (pass.plan.Guard == nil || pass.plan.Guard.Why == "" || next.ObservedTargets == "") {
		// What an edit explains is carried out, and the rest goes on waiting without it.
		next.ObservedTargets = target.Reach(&bundle.Spec)
	}
	switch {
	case !content.InRegistry(&bundle.Spec):
		next.OCIReference = ""
	case pass.reference != "":
		next.OCIReference = pass.reference
	}
	return next
}

func rolloutOf(plan target.Plan) *parent.Rollout {
	return &parent.Rollout{
		Missing:                  plan.Missing,
		NewlyCreated:             plan.NewlyCreated,
		Unavailable:              plan.Unavailable,
		MaxUnavailable:           plan.MaxUnavailable,
		UnavailablePartitions:    plan.UnavailablePartitions,
		MaxUnavailablePartitions: plan.MaxUnavailablePartitions,
		Partitions:               plan.Partitions,
		Progress:                 plan.Rollout,
		NextCheck:                plan.NextCheck,
	}
}

func problemsOf(plan target.Plan) []string {
	var problems []string
	if plan.Guard != nil {
		problems = append(problems, fmt.Sprintf("%s: annotate the bundle with %s", plan.Guard.Message(), fleet.ConfirmDeletesAnnotation))
	}
	for _, warning := range plan.Warnings {
		problems = append(problems, warning.Error())
	}
	return problems
}

// heldOf lists the clusters that are kept from what is wanted, with the state of what they run.
func heldOf(plan target.Plan, current []*fleet.BundleDeployment) []parent.Held {
	if len(plan.Failed) == 0 {
		return nil
	}
	states := make(map[string]fleet.BundleState, len(current))
	for _, deployment := range current {
		states[target.ClusterOf(deployment)] = status.Of(deployment)
	}
	held := make([]parent.Held, 0, len(plan.Failed))
	for _, failure := range plan.Failed {
		held = append(held, parent.Held{
			Name: failure.Cluster, State: states[failure.Cluster], Message: failure.Err.Error(), Waits: fault.ClassOf(failure.Err) == fault.Waiting,
		})
	}
	return held
}

// mergedOf says how far a bundle's deployments are merged, as the pass found them.
func mergedOf(bundle *fleet.Bundle, pass outcome) *parent.Merged {
	if bundle.Spec.Merge == nil || bundle.Spec.Merge.Mode != fleet.MergePerRepo {
		return nil
	}
	merged := &parent.Merged{Of: len(pass.current)}
	_, ok, reason := merge.PlaceOf(bundle)
	if merged.Reason = reason; !ok {
		return merged
	}
	for _, deployment := range pass.current {
		name := target.ClusterOf(deployment)
		switch {
		case merge.InMerged(deployment):
			merged.Merged++
		case !pass.places.Understood(deployment):
			merged.Old = append(merged.Old, name)
		case pass.places.Of(deployment) == nil:
			merged.Large = append(merged.Large, name)
		}
	}
	return merged
}

// delete removes the deployments and the values and lets go once the last one is gone; their deletion
// brings the bundle back here.
func (r *Reconciler) delete(ctx context.Context, bundle *fleet.Bundle) error {
	if !controllerutil.ContainsFinalizer(bundle, fleet.BundleFinalizer) {
		return nil
	}
	// A cache that is behind may show one that is gone, whose name another one has by now.
	if err := r.confirmBundle(ctx, bundle); err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(bundle)
	current, err := r.deployments(ctx, bundle)
	if err != nil {
		return err
	}
	plan, err := target.NewPlan(target.Snapshot{Bundle: bundle, Current: current})
	if err != nil {
		return err
	}
	if err := r.delivery.Execute(ctx, bundle, target.Snapshot{Current: current}, plan, delivery.PlacesOf(bundle, nil, current)); err != nil {
		return err
	}
	if len(current) > 0 {
		return nil // they wake us up when the cache does not show them any more
	}
	// It may not show the newest yet.
	if left, err := carrier.Left(ctx, r.Reader, key); err != nil || left {
		return err
	}
	if bundle.Spec.ValuesHash != "" {
		if err := r.values.Delete(ctx, key, fleet.BundleValuesSecretType); err != nil {
			return err
		}
	}
	before := bundle.DeepCopy()
	controllerutil.RemoveFinalizer(bundle, fleet.BundleFinalizer)
	if err := r.Client.Patch(ctx, bundle, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer from bundle %s: %w", key, err)
	}
	r.forget(key)
	return nil
}
