package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/pace"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// correct restores objects that differ, where that is asked for and their turn has come. It says whether it
// tried.
func (c *Controller) correct(ctx context.Context, e *entry, deployment *fleet.BundleDeployment, seen observation) bool {
	if wants(deployment, e) {
		return false
	}
	now := c.options.Clock.Now()
	var due []*unstructured.Unstructured
	var wait time.Duration
	for _, object := range seen.objects {
		key := manifest.KeyOf(object.Desired)
		corrections := e.corrections[key]
		drifted := object.Verdict.State == diff.Modified || object.Verdict.State == diff.Missing
		if !drifted || !corrects(deployment.Spec.CorrectDrift, object.Desired) {
			if corrections != nil {
				corrections.Rest()
			}
			continue
		}
		if corrections == nil {
			corrections = &pace.Corrections{}
			e.corrections[key] = corrections
		}
		if left := corrections.Wait(now); left > 0 {
			wait = pace.Sooner(wait, left)
			continue
		}
		due = append(due, object.Desired)
	}
	if wait > 0 {
		c.queue.AddAfter(e.name, wait)
	}
	if len(due) == 0 {
		return false
	}
	force := deployment.Spec.CorrectDrift != nil && deployment.Spec.CorrectDrift.Force
	if err := c.restore(ctx, e, deployment, due, force, now); err != nil {
		c.options.Log.Info("drift not corrected", "bundledeployment", e.name, "reason", err.Error())
		c.queue.Add(e.name) // which finds out when it is due again
	}
	return true
}

// corrects says whether drift of an object is corrected: as the deployment says, else if its strategy does.
func corrects(wanted *fleet.CorrectDrift, desired *unstructured.Unstructured) bool {
	if wanted != nil {
		return wanted.Enabled
	}
	return manifest.StrategyOf(desired) == fleet.ApplyServerSide
}

// correctionFailure returns why objects could not be corrected.
func (e *entry) correctionFailure() error {
	var failures []error
	for _, object := range e.record.Objects {
		if corrections := e.corrections[manifest.KeyOf(object)]; corrections != nil {
			failures = append(failures, corrections.Err())
		}
	}
	return errors.Join(failures...)
}

// restore applies objects again; one that fails does not keep the others from it.
func (c *Controller) restore(ctx context.Context, e *entry, deployment *fleet.BundleDeployment, due []*unstructured.Unstructured, force bool, now time.Time) error {
	identity, err := c.member.As(ctx, e.options.ServiceAccount)
	if err != nil {
		for _, desired := range due {
			e.corrections[manifest.KeyOf(desired)].Made(now, err)
		}
		return err
	}
	claim := c.deployer.Claim(deployment.Name, e.options)
	claim.Recorded = claimed(e.record.Objects)
	known := c.known(e)
	if e.answered == nil {
		e.answered = map[manifest.Key]*unstructured.Unstructured{}
	}
	var failures []error
	for _, phase := range manifest.Order(due) {
		for _, desired := range phase {
			key := manifest.KeyOf(desired)
			result, err := identity.Writer.Apply(ctx, desired, apply.Options{Claim: claim, Force: force, Restore: true, Known: known})
			if err != nil {
				err = fmt.Errorf("correct drift: %w", err)
				failures = append(failures, err)
			} else {
				e.answered[key] = result.Object
			}
			e.corrections[key].Made(now, err)
		}
	}
	return errors.Join(failures...)
}
