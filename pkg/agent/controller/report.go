package controller

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead-dev/fairlead/pkg/agent/hub"
	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
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
func (c *Controller) report(ctx context.Context, e *entry, deployment *fleet.BundleDeployment, seen observation) (time.Duration, error) {
	now := c.options.Clock.Now()
	wanted := report.Status(deployment, e.facts(deployment, seen), now)
	patch, err := report.Patch(&deployment.Status, wanted)
	if err != nil || patch == nil {
		return 0, err
	}
	if early := e.lastWrite.Add(writeEvery).Sub(now); early > 0 {
		return early, nil
	}
	written, err := c.hub.PatchStatus(ctx, deployment.Name, patch)
	if apierrors.IsNotFound(err) {
		return 0, nil // gone; its delete event follows
	}
	if err != nil {
		return 0, fmt.Errorf("write status of %s: %w", deployment.Name, err)
	}
	e.lastWrite = now
	hub.Trim(written)
	e.latest = written
	return 0, nil
}

// facts returns what the status is made of.
func (e *entry) facts(deployment *fleet.BundleDeployment, seen observation) report.Facts {
	facts := report.Facts{Known: e.loaded, Objects: seen.objects, Unseen: seen.err, Correction: e.correctionFailure()}
	if e.found {
		facts.Release = e.record.String()
		facts.Applied = deployment.Spec.DeploymentID != "" && !wants(deployment, e)
	}
	if e.failure != nil && e.failure.deploymentID == deployment.Spec.DeploymentID && wants(deployment, e) {
		facts.Failure = e.failure.err
	}
	return facts
}
