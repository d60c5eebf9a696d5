package delivery

import (
	"context"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// The hub gives deployments no finalizer, but upstream's does, and those it made are kept. Agents may not
// write deployments, so that the hub takes the finalizer off.

// releaseDeleted lets deployments go that somebody else has deleted: once the agent reports that nothing is
// installed any more, or at once when their bundle goes too.
func (e *Executor) releaseDeleted(ctx context.Context, bundle *fleet.Bundle, current []*fleet.BundleDeployment) error {
	var problems []error
	for _, deployment := range current {
		if deployment.DeletionTimestamp != nil && (bundle.DeletionTimestamp != nil || deployment.Status.AppliedDeploymentID == "") {
			problems = append(problems, e.options.Deployments.Release(ctx, deployment))
		}
	}
	return fault.Join(problems...)
}
