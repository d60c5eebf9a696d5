package hub

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// writeEvery is how often the status of one deployment is written at most.
const writeEvery = time.Second

// Reported is what was reported of one deployment. One goroutine at a time may use it.
type Reported struct {
	// latest is the object as our last status write left it.
	latest *fleet.BundleDeployment
	last   time.Time
}

// Newest returns the deployment with the status of our own last write while the cache lags behind it.
func (r *Reported) Newest(cached *fleet.BundleDeployment) *fleet.BundleDeployment {
	if r.latest == nil || r.latest.UID != cached.UID {
		r.latest = nil
		return cached
	}
	cachedVersion, err := strconv.ParseUint(cached.ResourceVersion, 10, 64)
	latestVersion, otherErr := strconv.ParseUint(r.latest.ResourceVersion, 10, 64)
	if err != nil || otherErr != nil || cachedVersion >= latestVersion {
		r.latest = nil
		return cached
	}
	current := *cached
	current.Status = r.latest.Status
	return &current
}

// Report writes the status of a deployment if it changed, wherever the deployment is carried: the first change at once,
// what follows within a second together. It returns when to come back for what it held back.
func (h *Hub) Report(ctx context.Context, reported *Reported, deployment *fleet.BundleDeployment, wanted *fleet.BundleDeploymentStatus, now time.Time) (time.Duration, error) {
	patch, err := report.Patch(&deployment.Status, wanted)
	carriers := merge.Carriers(deployment)
	behind := slices.DeleteFunc(carriers[1:], func(carrier merge.Carrier) bool { return !carrier.Blank && !carrier.Differs })
	if err != nil || patch == nil && len(behind) == 0 {
		return 0, err
	}
	if early := h.lastReport(reported, carriers[0]).Add(writeEvery).Sub(now); early > 0 {
		return early, nil
	}
	if patch == nil {
		for _, carrier := range behind {
			if err := h.putStatus(ctx, carrier, deployment.Name, wanted); err != nil && !apierrors.IsNotFound(err) {
				return 0, fmt.Errorf("write status of %s in %s: %w", deployment.Name, carrier.Name, err)
			}
		}
		reported.last = now
		return 0, nil
	}
	written, err := h.changeStatus(ctx, deployment, patch, wanted)
	if apierrors.IsNotFound(err) {
		return 0, nil // gone; its delete event follows
	}
	if err != nil {
		return 0, fmt.Errorf("write status of %s: %w", deployment.Name, err)
	}
	reported.last, reported.latest = now, written
	return 0, nil
}

// lastReport is when the status was last written, or that of another deployment in the same object.
func (h *Hub) lastReport(reported *Reported, carrier merge.Carrier) time.Time {
	h.reports.mutex.Lock()
	defer h.reports.mutex.Unlock()
	if last := h.reports.last[carrier.Name]; carrier.IsMerged() && last.After(reported.last) {
		return last
	}
	return reported.last
}
