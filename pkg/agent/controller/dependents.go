package controller

import (
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// deployments returns all BundleDeployments of the cluster, by name.
func (c *Controller) deployments() []*fleet.BundleDeployment {
	items := c.informer.GetStore().List()
	all := make([]*fleet.BundleDeployment, 0, len(items))
	for _, item := range items {
		if deployment, ok := item.(*fleet.BundleDeployment); ok {
			all = append(all, deployment)
		}
	}
	slices.SortFunc(all, func(a, b *fleet.BundleDeployment) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// wakeDependents queues all deployments that wait for others.
func (c *Controller) wakeDependents() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, e := range c.entries {
		if e.waits {
			c.queue.Add(name)
		}
	}
}
