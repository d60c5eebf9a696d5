package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const (
	// handoverPatience is how long an uninstall waits for deployments that may take objects over.
	handoverPatience = 30 * time.Second
	handoverRetry    = 200 * time.Millisecond
	// claimRetry is how often it is looked whether what is kept for another was taken; a change of its owner is
	// heard of before.
	claimRetry = 2 * time.Second
)

// handover lets objects move between bundles without being deleted on the way: the new owner takes an
// object over before the old one lets it go. Whoever drops objects waits until every deployment that has
// something new to deploy has tried it once, and spares what those asked for.
type handover struct {
	mu sync.Mutex
	// settled is the deployment id that was last tried, by BundleDeployment.
	settled map[string]string
	// waiting are deployments whose last attempt ended before it wrote anything, because they wait for something.
	waiting map[string]bool
	// holds are the objects of what is deployed.
	holds map[string]holding
	// contested names, by object, the deployments that wait for it.
	contested map[manifest.Key]contest
	// releases names, by owner, the deployments that wait for its release's name.
	releases map[string]map[string]bool
	// retries are deployments whose backoff is over because an object was let go.
	retries map[string]bool
	// leaving is when an uninstall was first put off.
	leaving map[string]time.Time
}

type holding struct {
	deploymentID string
	keys         map[manifest.Key]bool
}

type contest struct{ owner, claimant string }

func newHandover() *handover {
	return &handover{
		settled: map[string]string{}, waiting: map[string]bool{}, holds: map[string]holding{}, contested: map[manifest.Key]contest{},
		releases: map[string]map[string]bool{},
		retries:  map[string]bool{}, leaving: map[string]time.Time{},
	}
}

// tried notes that a deployment was attempted, and what it failed of, or that it needs no attempt.
func (h *handover) tried(name, deploymentID string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled[name] = deploymentID
	if fault.ClassOf(err) == fault.Waiting {
		h.waiting[name] = true
	} else {
		delete(h.waiting, name)
	}
}

// took notes what a deployment holds now, and lets those try again at once who wait for what it let go.
func (h *handover) took(name, deploymentID string, keys map[manifest.Key]bool) (waiting []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled[name] = deploymentID
	delete(h.waiting, name)
	h.holds[name] = holding{deploymentID, keys}
	h.releaseTaken(name)
	for key, contest := range h.contested {
		switch {
		case contest.claimant == name:
			delete(h.contested, key)
		case contest.owner == name && !keys[key]:
			h.retries[contest.claimant] = true
			waiting = append(waiting, contest.claimant)
		}
	}
	return waiting
}

// releaseTaken notes that a deployment waits for nobody's release any more.
func (h *handover) releaseTaken(claimant string) {
	for owner, claimants := range h.releases {
		delete(claimants, claimant)
		if len(claimants) == 0 {
			delete(h.releases, owner)
		}
	}
}

// claimants returns the deployments that wait for something of an owner's.
func (h *handover) claimants(owner string) []string {
	names := slices.Collect(maps.Keys(h.releases[owner]))
	for _, contest := range h.contested {
		if contest.owner == owner {
			names = append(names, contest.claimant)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (h *handover) mayRetry(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	retry := h.retries[name]
	delete(h.retries, name)
	return retry
}

func (h *handover) forget(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.settled, name)
	delete(h.waiting, name)
	delete(h.holds, name)
	delete(h.retries, name)
	delete(h.leaving, name)
	delete(h.releases, name)
	h.releaseTaken(name)
	for key, contest := range h.contested {
		if contest.claimant == name {
			delete(h.contested, key)
		}
	}
}

// yields returns, for a deployment, whether another set lets go of an object: its deployment is gone or
// going, or what it has deployed lacks the object. If not, the object is contested from now on.
func (c *Controller) yields(claimant string) func(setHash string, key manifest.Key) bool {
	return func(setHash string, key manifest.Key) bool {
		c.mu.Lock()
		owner, known := c.bundles[setHash]
		c.mu.Unlock()
		if !known {
			return false
		}
		deployment, err := c.cached(owner)
		if err != nil {
			return false
		}
		if deployment == nil || deployment.DeletionTimestamp != nil {
			return true
		}
		c.handover.mu.Lock()
		defer c.handover.mu.Unlock()
		held, found := c.handover.holds[owner]
		if found && held.deploymentID == deployment.Spec.DeploymentID && !held.keys[key] {
			return true
		}
		c.handover.contested[key] = contest{owner: owner, claimant: claimant}
		return false
	}
}

// leaves returns, for a deployment, whether another bundle's deployment is gone or being deleted. If not, the
// deployment waits for the other's release from now on.
func (c *Controller) leaves(claimant string) func(bundleID string) bool {
	return func(owner string) bool {
		deployment, err := c.cached(owner)
		if err != nil {
			return false
		}
		if deployment == nil || deployment.DeletionTimestamp != nil {
			return true
		}
		c.handover.mu.Lock()
		defer c.handover.mu.Unlock()
		if c.handover.releases[owner] == nil {
			c.handover.releases[owner] = map[string]bool{}
		}
		c.handover.releases[owner][claimant] = true
		return false
	}
}

// othersPending says whether another deployment has something new that was not tried yet.
func (c *Controller) othersPending(name string) bool {
	all := c.deployments()
	c.handover.mu.Lock()
	defer c.handover.mu.Unlock()
	for _, other := range all {
		if other.Name != name && other.DeletionTimestamp == nil && isFree(other) &&
			c.handover.settled[other.Name] != other.Spec.DeploymentID {
			return true
		}
	}
	return false
}

// spares says whether an object that a deployment drops has to stay for now.
func (c *Controller) spares(name string) func(manifest.Key) bool {
	return func(key manifest.Key) bool { return c.claimantOf(name, key) != "" || c.othersPending(name) }
}

// claimantOf returns the deployment that waits for an object of an owner's, "" for none.
func (c *Controller) claimantOf(owner string, key manifest.Key) string {
	c.handover.mu.Lock()
	defer c.handover.mu.Unlock()
	if contest, contested := c.handover.contested[key]; contested && contest.owner == owner {
		return contest.claimant
	}
	return ""
}

// othersWaiting says whether another deployment waits for something before it can ask for anything.
func (c *Controller) othersWaiting(name string) bool {
	c.handover.mu.Lock()
	defer c.handover.mu.Unlock()
	return len(c.handover.waiting) > 1 || len(c.handover.waiting) == 1 && !c.handover.waiting[name]
}

// isVolume tells what holds data that cannot be made anew.
func isVolume(key manifest.Key) bool {
	return key.GroupKind == schema.GroupKind{Kind: "PersistentVolumeClaim"}
}

// mustWait returns how long an uninstall has to wait, 0 for not at all, for deployments that may take objects over.
// Those that were refused something before try again at once. A volume is worth more patience than the rest.
func (c *Controller) mustWait(e *entry) time.Duration {
	name := e.name
	pending, volume := c.othersPending(name), c.hasVolume(e)
	others := volume && c.othersWaiting(name)
	c.handover.mu.Lock()
	defer c.handover.mu.Unlock()
	now := c.options.Clock.Now()
	began, waits := c.handover.leaving[name]
	claimants := c.handover.claimants(name)
	if !waits {
		began = now
		c.handover.leaving[name] = began
		for _, claimant := range claimants {
			c.handover.retries[claimant] = true
			c.queue.Add(claimant)
		}
	}
	waited := now.Sub(began)
	switch {
	case (pending || len(claimants) > 0) && waited < handoverPatience:
		return handoverRetry
	case volume && waited < c.options.VolumeGrace, others:
		return claimRetry
	}
	return 0
}

// hasVolume says whether a release still has a volume that goes with it.
func (c *Controller) hasVolume(e *entry) bool {
	known := c.known(e)
	return slices.ContainsFunc(e.record.Objects, func(object *unstructured.Unstructured) bool {
		if !isVolume(manifest.KeyOf(object)) {
			return false
		}
		live := known(object)
		return live != nil && live.GetLabels()[fleet.SetHashLabel] == e.setHash
	})
}

// letGo deletes objects that an earlier revision of the release holds and the present one does not, once
// nobody can ask for them any more, and notes what is kept for others until then. It returns when to come back.
func (c *Controller) letGo(ctx context.Context, e *entry, deployment *fleet.BundleDeployment) (time.Duration, error) {
	e.kept = nil
	if len(e.spared) == 0 || wants(deployment, e) {
		return 0, nil
	}
	var now, later []*unstructured.Unstructured
	again := time.Duration(0)
	pending, waiting := c.othersPending(e.name), c.othersWaiting(e.name)
	grace := c.options.VolumeGrace - c.options.Clock.Since(e.dropped)
	for _, object := range e.spared {
		key := manifest.KeyOf(object)
		claimant := c.claimantOf(e.name, key)
		switch {
		case claimant != "":
			again = sooner(again, claimRetry)
			e.kept = append(e.kept, fmt.Sprintf("keeps %s for %s", key, claimant))
		case pending:
			again = sooner(again, handoverRetry)
		case isVolume(key) && (grace > 0 || waiting):
			again = sooner(again, max(grace, claimRetry))
			e.kept = append(e.kept, fmt.Sprintf("keeps %s, which another bundle may take over", key))
		default:
			now = append(now, object)
			continue
		}
		later = append(later, object)
	}
	err := c.deployer.Prune(ctx, helm.Pruning{BundleID: e.name, Options: e.options, Objects: now, Known: c.known(e)})
	if err != nil {
		return 0, err
	}
	e.spared = later
	return again, nil
}
