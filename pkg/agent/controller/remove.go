package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead-dev/fairlead/pkg/agent/handover"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/releases"
	"github.com/fairlead-dev/fairlead/pkg/agent/pace"
	"github.com/fairlead-dev/fairlead/pkg/agent/removal"
	"github.com/fairlead-dev/fairlead/pkg/agent/sight"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// gone notes how a BundleDeployment went.
func (c *Controller) gone(name string, certain bool) {
	c.entry(name) // it may not have been looked at yet
	c.departures.Deleted(name, certain)
	c.queue.Add(name)
}

// reconcileDeleted uninstalls what a deletion timestamp says is to go, reports that it is gone, and
// lets the object go where that is the agent's to do.
func (c *Controller) reconcileDeleted(ctx context.Context, e *entry, deployment *fleet.BundleDeployment) (time.Duration, error) {
	if wait := c.mustWait(e); wait > 0 {
		return wait, nil
	}
	return 0, c.finishDeleted(ctx, e, deployment)
}

func (c *Controller) finishDeleted(ctx context.Context, e *entry, deployment *fleet.BundleDeployment) error {
	if err := c.uninstall(ctx, e, &deployment.Spec.Options); err != nil {
		_, reportErr := c.report(ctx, e, deployment, sight.Seen{Err: err})
		return errors.Join(err, reportErr)
	}
	e.loaded, e.found, e.record, e.attempts = true, false, releases.Record{}, pace.Attempts{}
	e.view.Close()
	if _, err := c.report(ctx, e, deployment, sight.Seen{}); err != nil {
		return err
	}
	if !slices.Contains(deployment.Finalizers, fleet.BundleDeploymentFinalizer) {
		return nil
	}
	current, err := c.hub.Get(ctx, deployment.Name)
	if err == nil {
		err = c.hub.RemoveFinalizer(ctx, current, fleet.BundleDeploymentFinalizer)
	}
	if apierrors.IsForbidden(err) {
		c.options.Log.V(1).Info("finalizer left to the hub", "bundledeployment", e.name)
		return nil
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// reconcileAbsent decides whether a release whose BundleDeployment is not listed has to go.
func (c *Controller) reconcileAbsent(ctx context.Context, e *entry) (time.Duration, error) {
	verdict, err := c.departures.Confirm(ctx, e.name, c.countKnown())
	if verdict.Listed {
		c.roster.Refresh()
	}
	if err != nil || !verdict.Gone {
		return verdict.Again, err
	}
	if wait := c.mustWait(e); wait > 0 {
		return wait, nil
	}
	if err := c.uninstall(ctx, e, nil); err != nil {
		return 0, err
	}
	if e.carrier != "" {
		// Should it come back there, it must not look as if it were installed.
		if err := c.hub.TakeBack(ctx, e.carrier, e.name); err != nil && !apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("take back the report of %s: %w", e.name, err)
		}
	}
	c.forget(e)
	return 0, nil
}

// mustWait returns how long an uninstall has to wait for deployments that may take objects over, 0 for not at all.
func (c *Controller) mustWait(e *entry) time.Duration {
	volume := handover.HasVolume(e.record.Objects, e.setHash, e.view.Known())
	wait, wake := c.handover.Wait(e.name, volume, c.options.Clock.Now())
	c.wake(wake)
	return wait
}

// letGo deletes objects that an earlier revision of the release holds and the present one does not, once
// nobody can ask for them any more, and notes what is kept for others until then. It returns when to come back.
func (c *Controller) letGo(ctx context.Context, e *entry, deployment *fleet.BundleDeployment) (time.Duration, error) {
	e.kept = nil
	if len(e.spared) == 0 || wants(deployment, e) {
		return 0, nil
	}
	division := c.handover.Divide(e.name, e.spared, c.options.Clock.Since(e.dropped))
	e.kept = division.Reasons
	err := c.deployer.Prune(ctx, helm.Pruning{BundleID: e.name, Options: e.options, Objects: division.Gone, Known: e.view.Known()})
	if err != nil {
		return 0, err
	}
	e.spared = division.Kept
	return division.Again, nil
}

// uninstall removes all releases of a bundle. With the options of its last deployment at hand they say
// how; else the release's own record does.
func (c *Controller) uninstall(ctx context.Context, e *entry, options *fleet.BundleDeploymentOptions) error {
	bundle := removal.Bundle{Name: e.name, Options: options, Copied: len(e.options.DownstreamResources) > 0, Known: e.view.Known()}
	if e.loaded && options == nil {
		bundle.Options = &e.options
	}
	if e.loaded && e.found {
		bundle.Record = &e.record
	}
	return c.remover.Remove(ctx, bundle)
}

// removeMoved uninstalls releases the bundle had under other names or in other namespaces.
func (c *Controller) removeMoved(ctx context.Context, e *entry) error {
	for len(e.moved) > 0 {
		if err := c.remover.RemoveMoved(ctx, e.moved[0], e.record, e.options, e.view.Known()); err != nil {
			return err
		}
		e.moved = e.moved[1:]
	}
	return nil
}
