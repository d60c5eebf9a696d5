package sight

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	"github.com/fairlead-dev/fairlead/pkg/agent/health"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	"github.com/fairlead-dev/fairlead/pkg/agent/pace"
	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Seen is what one look at the member gave.
type Seen struct {
	Objects []report.Sight
	// Err says why nothing could be seen.
	Err error
	// Pending means that something is not listed yet; there is nothing to tell before it is.
	Pending bool
	// Again is when to look once more, 0 for when something happens.
	Again time.Duration
}

// lookAgain is how soon a kind that the member does not know is looked for again; no event tells of it.
const lookAgain = 5 * time.Second

// Look looks at all objects of what is deployed.
func (v *View) Look(ctx context.Context, deployment *fleet.BundleDeployment, deployed Deployed) Seen {
	identity, err := v.observer.member.As(ctx, deployed.Options.ServiceAccount)
	if err != nil {
		return Seen{Err: err}
	}
	rules, err := diff.NewRules(deployment.Spec.Options.Diff)
	if err != nil {
		return Seen{Err: err}
	}
	_ = v.Check(deployment) // the objects tell
	if v.unmapped {
		v.observer.deployer.Releases().Locate(deployed.Record)
		v.follow(deployed.Record)
	}
	var seen Seen
	if v.unmapped {
		seen.Again = lookAgain
	}
	claim := v.observer.deployer.Claim(deployment.Name, deployed.Options)
	claim.Recorded = manifest.Claimed(deployed.Record.Objects)
	for _, desired := range deployed.Record.Objects {
		object := v.look(ctx, desired, identity, claim, rules, deployment.Spec.Options.IgnoreOptions)
		seen.Pending = seen.Pending || object.Verdict.Reason == notListed
		seen.Objects = append(seen.Objects, object)
	}
	seen.Again = pace.Sooner(seen.Again, v.explain(deployed.Record, identity, seen.Objects))
	return seen
}

func (v *View) look(ctx context.Context, desired *unstructured.Unstructured, identity *access.Identity, claim ownership.Claim, rules diff.Rules, ignore *fleet.IgnoreOptions) report.Sight {
	seen := report.Sight{Desired: desired}
	live, unknown := v.find(ctx, desired, identity)
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
		live, seen.Verdict = v.confirmed(ctx, seen, identity, claim, rules)
		seen.Live = live
	}
	seen.Summary, seen.Ready = health.Of(live, ignore)
	seen.Summary, seen.Ready = health.With(seen.Summary, seen.Ready, v.rules.Unmet(live))
	return seen
}

// confirmed looks at a custom resource itself that seems to differ: a watch that is older than the present schema of
// its kind does not show all fields. Such a watch is begun anew.
func (v *View) confirmed(ctx context.Context, seen report.Sight, identity *access.Identity, claim ownership.Claim, rules diff.Rules) (*unstructured.Unstructured, diff.Verdict) {
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
		if resource, err := v.observer.resourceOf(seen.Desired); err == nil {
			v.observer.watcher.Restart(resource)
		}
	}
	return fresh, identity.Writer.Compare(ctx, claim, seen.Desired, fresh, rules)
}

// notListed is the reason of an Unknown verdict that passes by itself.
const notListed = "not listed yet"

// find returns the newest that is known of a live object: what the watch has, or what the API server
// answered to our last write while the watch lags behind. What the watch lacks is asked for, since an
// object may have lost the mark by which it is watched.
func (v *View) find(ctx context.Context, desired *unstructured.Unstructured, identity *access.Identity) (live *unstructured.Unstructured, unknown string) {
	key := manifest.KeyOf(desired)
	resource, err := v.observer.resourceOf(desired)
	if err != nil {
		return nil, fmt.Sprintf("look up the kind of %s: %v", key, err)
	}
	if manifest.IsReadOnly(desired) {
		live, err := v.findReadOnly(ctx, resource, desired, identity)
		if err != nil {
			return nil, fmt.Sprintf("get %s: %v", key, err)
		}
		return live, ""
	}
	answered := v.answered[key]
	watched, known, reason := v.observer.watcher.Get(resource, desired.GetNamespace(), desired.GetName())
	switch {
	case !known && answered != nil:
		return answered, ""
	case !known:
		return nil, cmp.Or(reason, notListed)
	case watched != nil && watched.GetLabels()[fleet.SetHashLabel] != v.setHash:
		// Another's: whether it may be seen is a matter of the bundle's identity.
	case watched != nil && (answered == nil || !older(watched, answered)):
		delete(v.answered, key)
		return watched, ""
	case watched != nil:
		return answered, ""
	}
	live, err = identity.Writer.Get(ctx, desired)
	if err != nil {
		return nil, fmt.Sprintf("get %s: %v", key, err)
	}
	if live == nil {
		delete(v.answered, key)
	}
	return live, ""
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
