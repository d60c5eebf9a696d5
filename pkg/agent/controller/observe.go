package controller

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	"github.com/fairlead-dev/fairlead/pkg/agent/health"
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
	// unmapped means that the member does not know the kind of an object.
	unmapped bool
}

// lookAgain is how soon a kind that the member does not know is looked for again; no event tells of it.
const lookAgain = 5 * time.Second

// again returns when to look once more, 0 for when something happens.
func (o observation) again() time.Duration {
	if o.unmapped {
		return lookAgain
	}
	return 0
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
	if e.unmapped {
		c.deployer.Releases().Locate(e.record)
		c.follow(e)
	}
	seen.unmapped = e.unmapped
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

func (c *Controller) look(ctx context.Context, e *entry, desired *unstructured.Unstructured, identity *access.Identity, claim apply.Claim, rules diff.Rules, ignore *fleet.IgnoreOptions) report.Sight {
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
	if seen.Verdict.State == diff.Modified && !scheme.Scheme.IsGroupRegistered(live.GroupVersionKind().Group) {
		live, seen.Verdict = c.confirmed(ctx, seen, identity, claim, rules)
		seen.Live = live
	}
	seen.Summary, seen.Ready = health.Of(live, ignore)
	seen.Summary, seen.Ready = health.With(seen.Summary, seen.Ready, e.rules.Unmet(live))
	return seen
}

// confirmed looks at a custom resource itself that seems to differ: a watch that is older than the present schema of
// its kind does not show all fields. Such a watch is begun anew.
func (c *Controller) confirmed(ctx context.Context, seen report.Sight, identity *access.Identity, claim apply.Claim, rules diff.Rules) (*unstructured.Unstructured, diff.Verdict) {
	fresh, err := identity.Writer.Get(ctx, seen.Desired)
	if err != nil || fresh == nil || older(fresh, seen.Live) {
		return seen.Live, seen.Verdict
	}
	if fresh.GetResourceVersion() == seen.Live.GetResourceVersion() {
		watched, errA := diff.Digest(seen.Live)
		present, errB := diff.Digest(fresh)
		if errA != nil || errB != nil || watched == present {
			return seen.Live, seen.Verdict
		}
		if resource, err := c.resourceOf(seen.Desired); err == nil {
			c.watcher.Restart(resource)
		}
	}
	return fresh, identity.Writer.Compare(ctx, claim, seen.Desired, fresh, rules)
}

// notListed is the reason of an Unknown verdict that passes by itself.
const notListed = "not listed yet"

// find returns the newest that is known of a live object: what the watch has, or what the API server
// answered to our last write while the watch lags behind. What the watch lacks is asked for, since an
// object may have lost the mark by which it is watched.
func (c *Controller) find(ctx context.Context, e *entry, desired *unstructured.Unstructured, identity *access.Identity) (live *unstructured.Unstructured, unknown string) {
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
