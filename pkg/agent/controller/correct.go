package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/sight"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// correct restores objects that differ, where that is asked for and their turn has come. It says whether it
// tried.
func (c *Controller) correct(ctx context.Context, e *entry, deployment *fleet.BundleDeployment, seen sight.Seen) bool {
	if wants(deployment, e) {
		return false
	}
	now := c.options.Clock.Now()
	due, wait := e.turns.Due(seen.Objects, deployment.Spec.CorrectDrift, now)
	if wait > 0 {
		c.queue.AddAfter(e.name, wait)
	}
	if len(due) == 0 {
		return false
	}
	force := deployment.Spec.CorrectDrift != nil && deployment.Spec.CorrectDrift.Force
	if err := c.restore(ctx, e, due, force, now); err != nil {
		c.options.Log.Info("drift not corrected", "bundledeployment", e.name, "reason", err.Error())
		c.queue.Add(e.name) // which finds out when it is due again
	}
	return true
}

// restore applies objects again; one that fails does not keep the others from it.
func (c *Controller) restore(ctx context.Context, e *entry, due []*unstructured.Unstructured, force bool, now time.Time) error {
	identity, err := c.member.As(ctx, e.options.ServiceAccount)
	if err != nil {
		for _, desired := range due {
			e.turns.Made(desired, now, err)
		}
		return err
	}
	claim := c.deployer.Claim(e.name, e.options)
	claim.Recorded = manifest.Claimed(e.record.Objects)
	known := e.view.Known()
	var failures []error
	for _, phase := range manifest.Order(due) {
		for _, desired := range phase {
			result, err := identity.Writer.Apply(ctx, desired, apply.Options{Claim: claim, Force: force, Restore: true, Known: known})
			if err != nil {
				err = fmt.Errorf("correct drift: %w", err)
				failures = append(failures, err)
			} else {
				e.view.Answered(manifest.KeyOf(desired), result.Object)
			}
			e.turns.Made(desired, now, err)
		}
	}
	return errors.Join(failures...)
}
