package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	// handoverPatience is how long an uninstall waits for deployments that may take objects over.
	handoverPatience = 30 * time.Second
	handoverRetry    = 200 * time.Millisecond
	// volumeGrace is how long a volume that a release dropped, or a release with a volume, waits for another
	// deployment to ask for it. The hub's writes for two bundles of one commit may be further apart than a
	// deployment takes.
	volumeGrace = 10 * time.Second
)

// handover lets objects move between bundles without being deleted on the way: the new owner takes an
// object over before the old one lets it go. Whoever drops objects waits until every deployment that has
// something new to deploy has tried it once, and spares what those asked for.
type handover struct {
	mu sync.Mutex
	// settled is the deployment id that was last tried, by BundleDeployment.
	settled map[string]string
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
		settled: map[string]string{}, holds: map[string]holding{}, contested: map[manifest.Key]contest{},
		releases: map[string]map[string]bool{},
		retries:  map[string]bool{}, leaving: map[string]time.Time{},
	}
}

// tried notes that a deployment was attempted, or needs no attempt.
func (h *handover) tried(name, deploymentID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled[name] = deploymentID
}

// took notes what a deployment holds now, and lets those try again at once who wait for what it let go.
func (h *handover) took(name, deploymentID string, keys map[manifest.Key]bool) (waiting []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled[name] = deploymentID
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
	return func(key manifest.Key) bool {
		c.handover.mu.Lock()
		contest, contested := c.handover.contested[key]
		c.handover.mu.Unlock()
		return contested && contest.owner == name || c.othersPending(name)
	}
}

// isVolume tells what holds data that cannot be made anew.
func isVolume(key manifest.Key) bool {
	return key.GroupKind == schema.GroupKind{Kind: "PersistentVolumeClaim"}
}

// mustWait says whether an uninstall has to wait for deployments that may take objects over. Those that were
// refused something before try again at once.
func (c *Controller) mustWait(e *entry) bool {
	name := e.name
	pending, volume := c.othersPending(name), c.hasVolume(e)
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
	return (pending || len(claimants) > 0) && waited < handoverPatience || volume && waited < volumeGrace
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
// nobody can ask for them any more. It returns when to come back.
func (c *Controller) letGo(ctx context.Context, e *entry, deployment *fleet.BundleDeployment) (time.Duration, error) {
	if len(e.spared) == 0 || wants(deployment, e) {
		return 0, nil
	}
	var now, later []*unstructured.Unstructured
	again := time.Duration(0)
	spares, grace := c.spares(e.name), volumeGrace-c.options.Clock.Since(e.dropped)
	for _, object := range e.spared {
		switch key := manifest.KeyOf(object); {
		case spares(key):
			later, again = append(later, object), sooner(again, handoverRetry)
		case isVolume(key) && grace > 0:
			later, again = append(later, object), sooner(again, grace)
		default:
			now = append(now, object)
		}
	}
	err := c.deployer.Prune(ctx, helm.Pruning{BundleID: e.name, Options: e.options, Objects: now, Known: c.known(e)})
	if err != nil {
		return 0, err
	}
	e.spared = later
	return again, nil
}
