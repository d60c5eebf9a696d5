package controller

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// The hub gives deployments no finalizer, but upstream's does, and those it made are kept. Agents may not
// write deployments, so that the hub takes the finalizer off.

// releaseDeleted lets deployments go that somebody else has deleted: once the agent reports that nothing is
// installed any more, or at once when their bundle goes too.
func (r *Reconciler) releaseDeleted(ctx context.Context, bundle *fleet.Bundle, current []fleet.BundleDeployment) error {
	var problems []error
	for i := range current {
		deployment := &current[i]
		if deployment.DeletionTimestamp != nil && (bundle.DeletionTimestamp != nil || deployment.Status.AppliedDeploymentID == "") {
			problems = append(problems, r.release(ctx, deployment))
		}
	}
	return join(problems...)
}

// release takes upstream's finalizer off a deployment that has it.
func (r *Reconciler) release(ctx context.Context, deployment *fleet.BundleDeployment) error {
	if !slices.Contains(deployment.Finalizers, fleet.BundleDeploymentFinalizer) {
		return nil
	}
	released := deployment.DeepCopy()
	controllerutil.RemoveFinalizer(released, fleet.BundleDeploymentFinalizer)
	patch := client.MergeFromWithOptions(deployment, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, released, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
}
