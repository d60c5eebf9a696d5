package controller

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	"github.com/fairlead-dev/fairlead/pkg/agent/health"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// observation is what one look at the member gave.
type observation struct {
	objects []report.Sight
	// err says why nothing could be seen, or what correcting drift failed of.
	err error
	// pending means that something is not listed yet; there is nothing to tell before it is.
	pending bool
}

// observe looks at all objects of the release.
func (c *Controller) observe(ctx context.Context, e *entry, deployment *fleet.BundleDeployment) observation {
	var seen observation
	if !e.found {
		return seen
	}
	identity, err := c.member.As(ctx, e.options.ServiceAccount)
	if err != nil {
		return observation{err: err}
	}
	rules, err := diff.NewRules(deployment.Spec.Options.Diff)
	if err != nil {
		return observation{err: err}
	}
	_ = e.compileRules(deployment) // the objects tell
	claim := c.deployer.Claim(deployment.Name, e.options)
	claim.Recorded = claimed(e.record.Objects)
	for _, desired := range e.record.Objects {
		object := c.look(ctx, e, desired, identity, claim, rules, deployment.Spec.Options.IgnoreOptions)
		seen.pending = seen.pending || object.Verdict.Reason == notListed
		seen.objects = append(seen.objects, object)
	}
	c.explain(e, identity, seen.objects)
	return seen
}

func (c *Controller) look(ctx context.Context, e *entry, desired *unstructured.Unstructured, identity *helm.Identity, claim apply.Claim, rules diff.Rules, ignore *fleet.IgnoreOptions) report.Sight {
	seen := report.Sight{Desired: desired}
	live, unknown := c.find(ctx, e, desired, identity)
	switch {
	case unknown != "":
		seen.Verdict = diff.Verdict{State: diff.Unknown, Reason: unknown}
		return seen
	case live == nil && (rules.Hides(desired) || manifest.Expires(desired)):
		seen.Verdict, seen.Ready = diff.Verdict{State: diff.InSync}, true
		return seen
	case live == nil:
		seen.Verdict = diff.Verdict{State: diff.Missing}
		return seen
	}
	seen.Live = live
	seen.Verdict = identity.Writer.Compare(ctx, claim, desired, live, rules)
	seen.Summary, seen.Ready = health.Of(live, ignore)
	seen.Summary, seen.Ready = health.With(seen.Summary, seen.Ready, e.rules.Unmet(live))
	return seen
}

// notListed is the reason of an Unknown verdict that passes by itself.
const notListed = "not listed yet"

// find returns the newest that is known of a live object: what the watch has, or what the API server
// answered to our last write while the watch lags behind. What the watch lacks is asked for, since an
// object may have lost the mark by which it is watched.
func (c *Controller) find(ctx context.Context, e *entry, desired *unstructured.Unstructured, identity *helm.Identity) (live *unstructured.Unstructured, unknown string) {
	key := manifest.KeyOf(desired)
	resource, err := c.resourceOf(desired)
	if err != nil {
		return nil, fmt.Sprintf("look up the kind of %s: %v", key, err)
	}
	if manifest.IsReadOnly(desired) {
		live, err := c.findReadOnly(ctx, resource, desired, identity)
		if err != nil {
			return nil, fmt.Sprintf("get %s: %v", key, err)
		}
		return live, ""
	}
	answered := e.answered[key]
	watched, known, reason := c.watcher.Get(resource, desired.GetNamespace(), desired.GetName())
	switch {
	case !known && answered != nil:
		return answered, ""
	case !known:
		return nil, cmp.Or(reason, notListed)
	case watched != nil && watched.GetLabels()[fleet.SetHashLabel] != e.setHash:
		// Another's: whether it may be seen is a matter of the bundle's identity.
	case watched != nil && (answered == nil || !older(watched, answered)):
		delete(e.answered, key)
		return watched, ""
	case watched != nil:
		return answered, ""
	}
	live, err = identity.Writer.Get(ctx, desired)
	if err != nil {
		return nil, fmt.Sprintf("get %s: %v", key, err)
	}
	if live == nil {
		delete(e.answered, key)
	}
	return live, ""
}

// known returns what is known of live objects without asking for them: what the watch has, or what was
// answered to our last write while the watch lags behind.
func (c *Controller) known(e *entry) apply.Knowledge {
	return func(desired *unstructured.Unstructured) *unstructured.Unstructured {
		resource, err := c.resourceOf(desired)
		if err != nil {
			return nil
		}
		watched, _, _ := c.watcher.Get(resource, desired.GetNamespace(), desired.GetName())
		answered := e.answered[manifest.KeyOf(desired)]
		if watched == nil || answered != nil && older(watched, answered) {
			return answered
		}
		return watched
	}
}

// older compares resource versions, which grow (KEP 5504).
func older(a, b *unstructured.Unstructured) bool {
	if a.GetUID() != b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion() {
		return false
	}
	before, errA := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	after, errB := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errA == nil && errB == nil && before < after
}

const (
	// correctionsAtOnce follow each other without delay; a fight is slowed down from then on.
	correctionFirst = 2 * time.Second
	correctionMost  = 5 * time.Minute
	// calm is how long a corrected bundle has to stay so for its backoff to start anew.
	calm = 10 * time.Second
)

// correction is the backoff of drift correction for one bundle.
type correction struct {
	attempts int
	last     time.Time
	err      error
}

// correct restores objects that differ, if the deployment asks for it. It says whether it wrote.
func (c *Controller) correct(ctx context.Context, e *entry, deployment *fleet.BundleDeployment, seen observation) bool {
	if wants(deployment, e) {
		return false
	}
	wanted := deployment.Spec.CorrectDrift
	var drifted []report.Sight
	for _, object := range seen.objects {
		if !corrects(wanted, object.Desired) {
			continue
		}
		if object.Verdict.State == diff.Modified || object.Verdict.State == diff.Missing {
			drifted = append(drifted, object)
		}
	}
	now := c.options.Clock.Now()
	if len(drifted) == 0 {
		e.correction.err = nil
		return false
	}
	if now.Sub(e.correction.last) > calm && e.correction.err == nil && e.correction.delay() < calm {
		e.correction.attempts = 0
	}
	if wait := e.correction.last.Add(e.correction.delay()).Sub(now); wait > 0 {
		c.queue.AddAfter(e.name, wait)
		return false
	}
	e.correction.attempts++
	e.correction.last = now
	e.correction.err = c.restore(ctx, e, deployment, drifted, wanted != nil && wanted.Force)
	if e.correction.err != nil {
		c.options.Log.Info("drift not corrected", "bundledeployment", e.name, "attempt", e.correction.attempts, "reason", e.correction.err.Error())
		c.queue.AddAfter(e.name, e.correction.delay())
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

// delay returns how long to wait after the last attempt: nothing at first, then 2 s, 10 s, 50 s and so
// on, which makes six attempts in ten minutes.
func (c correction) delay() time.Duration {
	if c.attempts == 0 {
		return 0
	}
	delay := correctionFirst
	for range c.attempts - 1 {
		delay = min(5*delay, correctionMost)
	}
	return delay
}

func (c *Controller) restore(ctx context.Context, e *entry, deployment *fleet.BundleDeployment, drifted []report.Sight, force bool) error {
	identity, err := c.member.As(ctx, e.options.ServiceAccount)
	if err != nil {
		return err
	}
	claim := c.deployer.Claim(deployment.Name, e.options)
	claim.Recorded = claimed(e.record.Objects)
	var objects []*unstructured.Unstructured
	for _, object := range drifted {
		objects = append(objects, object.Desired)
	}
	known := c.known(e)
	if e.answered == nil {
		e.answered = map[manifest.Key]*unstructured.Unstructured{}
	}
	for _, phase := range manifest.Order(objects) {
		for _, desired := range phase {
			result, err := identity.Writer.Apply(ctx, desired, apply.Options{Claim: claim, Force: force, Restore: true, Known: known})
			if err != nil {
				return fmt.Errorf("correct drift: %w", err)
			}
			e.answered[manifest.KeyOf(desired)] = result.Object
		}
	}
	return nil
}
