package controller

import (
	"errors"
	"time"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/contents"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/delivery"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/interests"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/ledger"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// outcome is what a pass found out.
type outcome struct {
	plan    target.Plan
	planned bool
	// current are the deployments the pass was planned on.
	current []*fleet.BundleDeployment
	// places are where they belong.
	places delivery.Places
	// reference is where the files are in a registry.
	reference string
	// missed says that a cluster changed while the pass read, so that it may not have seen that.
	missed bool
	err    error
}

// unseen says that the pass wrote deployments without trouble: the next one, when they are visible, can
// say how they do. With more to create the numbers are told in between.
func (o outcome) unseen() bool {
	return o.err == nil && !o.plan.More && len(o.plan.Create)+len(o.plan.Update) > 0
}

// tooEarly is the pause until the next pass when this one could not see, or does not see yet, what it would tell.
func (o outcome) tooEarly() time.Duration {
	switch {
	case errors.Is(o.err, ledger.ErrBehind), o.unseen():
		return behindRetry
	case errors.Is(o.err, contents.ErrChanged):
		return changedRetry
	}
	return 0
}

// again is when to plan once more without an event: at once when the plan was cut and all of it done, soon when a
// cluster changed meanwhile, after a while when it could not be told whether what it lacks exists, else when the rollout may go on by time alone.
func (o outcome) again(now time.Time) time.Duration {
	switch {
	case o.plan.More && o.err == nil:
		return time.Millisecond
	case o.missed:
		return interests.Pause
	case o.plan.Guard != nil && o.plan.Guard.Why != "":
		return doubtRetry
	case o.plan.NextCheck.IsZero():
		return 0
	}
	return max(o.plan.NextCheck.Sub(now), time.Millisecond)
}

// doubtRetry is longer than a cache takes to be listed anew.
const doubtRetry = 10 * time.Second

// observed says that the pass is through with this version of the spec: nothing of it is left to be retried.
func (o outcome) observed() bool {
	return o.plan.Unchecked == 0 && !o.plan.Unsettled && !fault.HasTransient(o.err) && fault.ClassOf(o.err) != fault.Waiting
}
