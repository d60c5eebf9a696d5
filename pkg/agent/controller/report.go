package controller

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	"github.com/fairlead-dev/fairlead/pkg/agent/sight"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// writeEvery is how often the status of one deployment is written at most.
const writeEvery = time.Second

// newest returns the deployment with the status of our own last write while the cache lags behind it.
func (e *entry) newest(cached *fleet.BundleDeployment) *fleet.BundleDeployment {
	if e.latest == nil || e.latest.UID != cached.UID {
		e.latest = nil
		return cached
	}
	cachedVersion, err := strconv.ParseUint(cached.ResourceVersion, 10, 64)
	latestVersion, otherErr := strconv.ParseUint(e.latest.ResourceVersion, 10, 64)
	if err != nil || otherErr != nil || cachedVersion >= latestVersion {
		e.latest = nil
		return cached
	}
	current := *cached
	current.Status = e.latest.Status
	return &current
}

// report writes the status if it changed: the first change at once, what follows within a second
// together. It returns when to come back for what it held back.
func (c *Controller) report(ctx context.Context, e *entry, deployment *fleet.BundleDeployment, seen sight.Seen) (time.Duration, error) {
	now := c.options.Clock.Now()
	wanted := report.Status(deployment, e.facts(deployment, seen), now)
	patch, err := report.Patch(&deployment.Status, wanted)
	carriers := merge.Carriers(deployment)
	behind := slices.DeleteFunc(carriers[1:], func(carrier merge.Carrier) bool { return !carrier.Blank && !carrier.Differs })
	if err != nil || patch == nil && len(behind) == 0 {
		return 0, err
	}
	if early := c.lastWrite(e, carriers[0]).Add(writeEvery).Sub(now); early > 0 {
		return early, nil
	}
	if patch == nil {
		for _, carrier := range behind {
			if err := c.hub.PutStatus(ctx, carrier, deployment.Name, wanted); err != nil && !apierrors.IsNotFound(err) {
				return 0, fmt.Errorf("write status of %s in %s: %w", deployment.Name, carrier.Name, err)
			}
		}
		e.lastWrite = now
		return 0, nil
	}
	written, err := c.hub.PatchStatus(ctx, deployment, patch, wanted)
	if apierrors.IsNotFound(err) {
		return 0, nil // gone; its delete event follows
	}
	if err != nil {
		return 0, fmt.Errorf("write status of %s: %w", deployment.Name, err)
	}
	e.lastWrite, e.latest = now, written
	return 0, nil
}

// lastWrite is when the status was last written, or that of another deployment in the same object.
func (c *Controller) lastWrite(e *entry, carrier merge.Carrier) time.Time {
	if last := c.hub.LastReport(carrier.Name); carrier.IsMerged() && last.After(e.lastWrite) {
		return last
	}
	return e.lastWrite
}

// facts returns what the status is made of.
func (e *entry) facts(deployment *fleet.BundleDeployment, seen sight.Seen) report.Facts {
	facts := report.Facts{Known: e.loaded, Objects: seen.Objects, Unseen: seen.Err, Correction: e.turns.Err(e.record.Objects), Kept: e.kept}
	if e.found {
		facts.Release = e.record.String()
		facts.Applied = deployment.Spec.DeploymentID != "" && !wants(deployment, e)
	}
	if e.failure != nil && e.failure.deploymentID == deployment.Spec.DeploymentID && wants(deployment, e) {
		facts.Failure = e.failure.err
	}
	return facts
}
