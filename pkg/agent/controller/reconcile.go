package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/pace"
	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	"github.com/fairlead-dev/fairlead/pkg/agent/roster"
	"github.com/fairlead-dev/fairlead/pkg/agent/sight"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/depends"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// reconcile brings one bundle where its BundleDeployment wants it. It returns when to look again, 0
// for "when something happens".
func (c *Controller) reconcile(ctx context.Context, name string) (time.Duration, error) {
	cached, err := c.roster.Get(name)
	if err != nil {
		return 0, err
	}
	if cached == nil && !c.isKnown(name) {
		return 0, nil // gone and forgotten; the last events of its objects arrive
	}
	e := c.entry(name)
	if cached == nil {
		return c.reconcileAbsent(ctx, e)
	}
	c.departures.Forget(e.name)
	e.carrier = mergedIn(cached)
	deployment := e.reported.Newest(cached)
	if deployment.DeletionTimestamp != nil {
		return c.reconcileDeleted(ctx, e, deployment)
	}
	if err := c.load(ctx, e, deployment); err != nil {
		if fault.NeedsPerson(err) {
			c.handover.Tried(e.name, deployment.Spec.DeploymentID, err) // nobody need wait for it
		}
		return c.report(ctx, e, deployment, sight.Seen{Err: err})
	}
	if wants(deployment, e) && roster.IsFree(deployment) {
		c.attempt(ctx, e, deployment)
		if err := c.load(ctx, e, deployment); err != nil {
			return c.report(ctx, e, deployment, sight.Seen{Err: err})
		}
	}
	later, err := c.tidy(ctx, e, deployment)
	if err != nil {
		return 0, err
	}
	again, err := c.examine(ctx, e, deployment)
	return pace.Sooner(again, later), err
}

// examine observes what is on the member, corrects it where that is wanted, and reports.
func (c *Controller) examine(ctx context.Context, e *entry, deployment *fleet.BundleDeployment) (time.Duration, error) {
	seen := e.look(ctx, deployment)
	if roster.IsFree(deployment) && c.correct(ctx, e, deployment, seen) {
		seen = e.look(ctx, deployment)
	}
	later := pace.Sooner(seen.Again, c.nextAttempt(e, deployment))
	if seen.Pending {
		return later, nil
	}
	again, err := c.report(ctx, e, deployment, seen)
	return pace.Sooner(again, later), err
}

// look looks at what is deployed.
func (e *entry) look(ctx context.Context, deployment *fleet.BundleDeployment) sight.Seen {
	if !e.found {
		return sight.Seen{}
	}
	return e.view.Look(ctx, deployment, sight.Deployed{Record: e.record, Options: e.options})
}

// mergedIn returns the merged object that a deployment is in, or "".
func mergedIn(deployment *fleet.BundleDeployment) string {
	if carrier := merge.Carriers(deployment)[0]; carrier.IsMerged() {
		return carrier.Name
	}
	return ""
}

// tidy removes what the deployment no longer needs, where that is not a matter of the release itself.
func (c *Controller) tidy(ctx context.Context, e *entry, deployment *fleet.BundleDeployment) (time.Duration, error) {
	c.takeLeftBehind(e)
	if !roster.IsFree(deployment) || wants(deployment, e) {
		return 0, nil
	}
	c.wake(c.handover.Took(e.name, deployment.Spec.DeploymentID, e.record.Objects))
	if err := c.removeMoved(ctx, e); err != nil {
		return 0, err
	}
	return c.letGo(ctx, e, deployment)
}

// wants says whether the release is not what the deployment asks for. A release made by another agent
// carries no id; then the status tells what it is.
func wants(deployment *fleet.BundleDeployment, e *entry) bool {
	switch {
	case deployment.Spec.DeploymentID == "":
		return false
	case !e.found, !e.record.Deployed:
		return true
	case deployment.Status.AppliedDeploymentID == deployment.Spec.DeploymentID && e.copiedGeneration(deployment) != deployment.Spec.DownstreamResourcesGeneration:
		return true
	case e.record.DeploymentID == "":
		return deployment.Status.AppliedDeploymentID != deployment.Spec.DeploymentID
	}
	return e.record.DeploymentID != deployment.Spec.DeploymentID
}

// copiedGeneration returns the generation of the copies from the hub that are on the member.
func (e *entry) copiedGeneration(deployment *fleet.BundleDeployment) int64 {
	if e.copied != nil {
		return *e.copied
	}
	return deployment.Status.DownstreamResourcesGeneration
}

// load reads the newest revision of the release when it is not known yet, or when the deployment now
// names another release.
func (c *Controller) load(ctx context.Context, e *entry, deployment *fleet.BundleDeployment) error {
	claim := c.deployer.Claim(deployment.Name, deployment.Spec.Options)
	moved := e.found && (e.record.Name != claim.Release || e.record.Namespace != claim.ReleaseNamespace)
	if e.loaded && !moved {
		return nil
	}
	if moved {
		e.moved = append(e.moved, e.record)
	}
	record, found, err := c.deployer.Releases().Current(ctx, deployment.Name, deployment.Spec.Options)
	if err != nil {
		return fmt.Errorf("read release of %s: %w", deployment.Name, err)
	}
	e.loaded, e.found, e.record = true, found, record
	e.options, e.spared, e.dropped = deployment.Spec.Options, record.Former, c.options.Clock.Now()
	e.view.Follow(record, nil)
	return nil
}

// attempt deploys unless the last attempt at the same failed a moment ago.
func (c *Controller) attempt(ctx context.Context, e *entry, deployment *fleet.BundleDeployment) {
	id := deployment.Spec.DeploymentID
	retry := c.handover.MayRetry(e.name)
	if !retry && !e.attempts.May(id, c.options.Clock.Now()) {
		return
	}
	err := c.deploy(ctx, e, deployment)
	c.handover.Tried(e.name, id, err)
	if err == nil {
		e.attempts = pace.Attempts{}
		return
	}
	attempts := e.attempts.Failed(id, err, c.options.Clock.Now())
	c.options.Log.Info("deployment failed", "bundledeployment", e.name, "class", fault.ClassOf(err), "attempt", attempts, "reason", err.Error())
}

func (c *Controller) nextAttempt(e *entry, deployment *fleet.BundleDeployment) time.Duration {
	if !wants(deployment, e) || !roster.IsFree(deployment) {
		return 0
	}
	return e.attempts.Wait(c.options.Clock.Now())
}

func (c *Controller) deploy(ctx context.Context, e *entry, deployment *fleet.BundleDeployment) error {
	if err := e.view.Check(deployment); err != nil {
		return err
	}
	c.setWaits(e, true) // before looking, so that what changes meanwhile wakes us
	if err := depends.Check(deployment, c.roster.All()); err != nil {
		return err
	}
	c.setWaits(e, false)
	input, err := c.hub.Input(ctx, deployment)
	if err != nil {
		return err
	}
	copies, err := c.hub.Copies(ctx, deployment)
	if err != nil {
		return err
	}
	outcome, err := c.deployer.Deploy(ctx, helm.Request{
		DeploymentID: deployment.Spec.DeploymentID, Input: input,
		Copies: copies, CopiedBefore: len(e.options.DownstreamResources) > 0, Yields: c.handover.Yields(e.name),
		Leaves: c.handover.Leaves(e.name), Spares: c.handover.Spares(e.name),
		Known: e.view.Known(),
	})
	if err != nil {
		e.loaded = false // a failed revision is there now, and some objects may be
		return err
	}
	for _, note := range outcome.Notes {
		c.options.Log.Info("object merged", "bundledeployment", e.name, "note", note)
	}
	e.loaded, e.found, e.record = true, true, outcome.Record
	e.turns = pace.Turns{} // a new revision starts anew
	e.options, e.spared, e.dropped = deployment.Spec.Options, outcome.Spared, c.options.Clock.Now()
	copied := deployment.Spec.DownstreamResourcesGeneration
	e.copied = &copied
	e.view.Follow(outcome.Record, outcome.Live)
	return nil
}

// takeLeftBehind moves what the collector found to where this pass may use it.
func (c *Controller) takeLeftBehind(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.moved = append(e.moved, e.leftBehind...)
	e.leftBehind = nil
}

func (c *Controller) setWaits(e *entry, waits bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.waits = waits
}

// report writes the status if it changed. It returns when to come back for what was held back.
func (c *Controller) report(ctx context.Context, e *entry, deployment *fleet.BundleDeployment, seen sight.Seen) (time.Duration, error) {
	now := c.options.Clock.Now()
	return c.hub.Report(ctx, &e.reported, deployment, report.Status(deployment, e.facts(deployment, seen), now), now)
}

// facts returns what the status is made of.
func (e *entry) facts(deployment *fleet.BundleDeployment, seen sight.Seen) report.Facts {
	facts := report.Facts{Known: e.loaded, Objects: seen.Objects, Unseen: seen.Err, Correction: e.turns.Err(e.record.Objects), Kept: e.kept}
	if e.found {
		facts.Release = e.record.String()
		facts.Applied = deployment.Spec.DeploymentID != "" && !wants(deployment, e)
	}
	if wants(deployment, e) {
		facts.Failure = e.attempts.Err(deployment.Spec.DeploymentID)
	}
	return facts
}
