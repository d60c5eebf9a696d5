package controller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/fairlead-dev/fairlead/pkg/agent/handover"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/releases"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/sight"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
)

// departure is what is known of a BundleDeployment that is not there any more.
type departure struct {
	// certain means that the hub told of its deletion.
	certain bool
	// since is when a list first lacked it and the hub confirmed that.
	since time.Time
}

const (
	// massDelete is how many releases may always go because a list lacks their deployments; beyond, at
	// most half of all may.
	massDelete = 5
	// selfPrefix starts the names of bundles that hold the agent itself.
	selfPrefix = "fleet-agent-"
)

// deleted notes how a BundleDeployment went: by an event, or because a new list lacks it.
func (c *Controller) deleted(object any) {
	inferred := false
	if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object, inferred = unseen.Obj, true
	}
	deployment, ok := object.(*fleet.BundleDeployment)
	if !ok {
		return
	}
	e := c.entry(deployment.Name)
	c.mu.Lock()
	e.gone.certain = !inferred
	c.mu.Unlock()
	c.queue.Add(deployment.Name)
	c.wakeDependents()
}

func (c *Controller) stays(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.gone = departure{}
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
	if err := c.uninstall(ctx, e.name, &deployment.Spec.Options); err != nil {
		_, reportErr := c.report(ctx, e, deployment, sight.Seen{Err: err})
		return errors.Join(err, reportErr)
	}
	e.loaded, e.found, e.record, e.failure = true, false, releases.Record{}, nil
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
	_, err := c.hub.Get(ctx, e.name)
	switch {
	case err == nil:
		c.informers.Refresh(&fleet.BundleDeployment{}) // no event is to come of what a first list lacked
		return time.Second, nil
	case !confirm.Gone(err):
		return 0, fmt.Errorf("confirm that %s is gone: %w", e.name, err)
	}
	c.mu.Lock()
	now := c.options.Clock.Now()
	if e.gone.since.IsZero() {
		e.gone.since = now
	}
	gone := e.gone
	c.mu.Unlock()
	if !gone.certain {
		if wait := gone.since.Add(c.options.ConfirmAfter).Sub(now); wait > 0 {
			return wait, nil
		}
		if held, err := c.holdBack(ctx); err != nil || held {
			return c.options.CollectEvery, err
		}
	}
	if wait := c.mustWait(e); wait > 0 {
		return wait, nil
	}
	if err := c.uninstall(ctx, e.name, nil); err != nil {
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

// holdBack says whether the hub's list is not to be believed: it is empty, or lacks more than half of
// what is deployed.
func (c *Controller) holdBack(ctx context.Context) (bool, error) {
	empty, err := c.hub.IsEmpty(ctx)
	if err != nil {
		return true, fmt.Errorf("confirm the list of deployments: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	inferred, all := 0, len(c.entries)
	for _, e := range c.entries {
		if !e.gone.since.IsZero() && !e.gone.certain {
			inferred++
		}
	}
	held := empty || inferred > massDelete && inferred > all/2
	if held {
		c.options.Log.Info("removal held back", "deployments", all, "missing", inferred, "listEmpty", empty)
	}
	return held, nil
}

// uninstall removes all releases of a bundle. With the options of its last deployment at hand they say
// how; else the release's own record does.
func (c *Controller) uninstall(ctx context.Context, name string, options *fleet.BundleDeploymentOptions) error {
	e := c.entry(name)
	if options == nil && e.loaded {
		options = &e.options
	}
	records, err := c.releasesOf(ctx, e, options)
	if err != nil {
		return err
	}
	for _, record := range records {
		if isSelf(record, c.options.AgentNamespace) {
			c.options.Log.Info("the agent does not uninstall itself", "bundledeployment", name)
			continue
		}
		removal := helm.Removal{Record: record, Copies: true, Known: e.view.Known()}
		if options != nil {
			policy := releases.PolicyOf(*options)
			removal.Policy = &policy
			removal.Copies = len(options.DownstreamResources) > 0 || len(e.options.DownstreamResources) > 0
		}
		if err := c.deployer.Uninstall(ctx, removal); err != nil {
			return err
		}
		c.options.Log.Info("uninstalled", "bundledeployment", name, "release", record.String())
	}
	return nil
}

// releasesOf returns the releases of a bundle: the one its options name, or whatever the member has.
func (c *Controller) releasesOf(ctx context.Context, e *entry, options *fleet.BundleDeploymentOptions) ([]releases.Record, error) {
	if e.loaded && e.found {
		return []releases.Record{e.record}, nil
	}
	if options != nil {
		record, found, err := c.deployer.Releases().Current(ctx, e.name, *options)
		if err != nil || found {
			return []releases.Record{record}, err
		}
	}
	all, err := c.deployer.Releases().List(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(record releases.Record) bool { return record.BundleID != e.name }), nil
}

func isSelf(record releases.Record, agentNamespace string) bool {
	return record.Namespace == agentNamespace && strings.HasPrefix(record.BundleID, selfPrefix)
}

// removeMoved uninstalls releases the bundle had under other names or in other namespaces; what the
// new release holds stays.
func (c *Controller) removeMoved(ctx context.Context, e *entry) error {
	for len(e.moved) > 0 {
		record := e.moved[0]
		removal := helm.Removal{
			Record: record, Keep: manifest.Keys(e.record.Objects), Known: e.view.Known(),
			Policy: &releases.Policy{KeepResources: e.options.KeepResources, DeleteCRDResources: e.options.DeleteCRDResources},
			Copies: record.Namespace != e.record.Namespace, // else the new release has them
		}
		if err := c.deployer.Uninstall(ctx, removal); err != nil {
			return err
		}
		c.options.Log.Info("uninstalled", "bundledeployment", e.name, "release", record.String(), "movedTo", e.record.String())
		e.moved = e.moved[1:]
	}
	return nil
}

// collectPeriodically looks for releases whose BundleDeployment is gone.
func (c *Controller) collectPeriodically(ctx context.Context) {
	timer := c.options.Clock.NewTimer(c.options.CollectEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		c.collect(ctx)
		timer.Reset(c.options.CollectEvery + rand.N(c.options.CollectEvery/4+1))
	}
}

func (c *Controller) collect(ctx context.Context) {
	records, err := c.deployer.Releases().List(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.options.Log.Error(err, "cannot look for releases without a deployment")
		}
		return
	}
	for _, record := range records {
		deployment, err := c.roster.Get(record.BundleID)
		if err != nil || record.BundleID == "" {
			continue
		}
		e := c.entry(record.BundleID)
		if deployment != nil && !c.isLeftBehind(e, record, deployment) {
			continue
		}
		c.queue.Add(record.BundleID)
	}
}

// isLeftBehind notes a release that the bundle had under another name before this agent started.
func (c *Controller) isLeftBehind(e *entry, record releases.Record, deployment *fleet.BundleDeployment) bool {
	claim := c.deployer.Claim(deployment.Name, deployment.Spec.Options)
	if record.Name == claim.Release && record.Namespace == claim.ReleaseNamespace {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.leftBehind = append(e.leftBehind, record)
	return true
}
