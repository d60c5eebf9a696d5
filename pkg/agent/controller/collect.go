package controller

import (
	"context"
	"math/rand/v2"

	"github.com/fairlead-dev/fairlead/pkg/agent/helm/releases"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

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
