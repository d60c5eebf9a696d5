package controller

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/handover"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/releases"
	"github.com/fairlead-dev/fairlead/pkg/agent/hub"
	"github.com/fairlead-dev/fairlead/pkg/agent/pace"
	"github.com/fairlead-dev/fairlead/pkg/agent/removal"
	"github.com/fairlead-dev/fairlead/pkg/agent/roster"
	"github.com/fairlead-dev/fairlead/pkg/agent/sight"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Options of the controller.
type Options struct {
	// AgentNamespace is where the agent runs on the member.
	AgentNamespace string
	// Workers is how many bundles are worked on at the same time; 0 means 50.
	Workers int
	// CollectEvery is how often releases without a BundleDeployment are looked for; 0 means 15 minutes.
	CollectEvery time.Duration
	// ConfirmAfter is how long a BundleDeployment must have been absent from lists before its release is
	// removed; 0 means 30 seconds.
	ConfirmAfter time.Duration
	// VolumeGrace is how long a volume that a release dropped, or a release with a volume, waits for another deployment
	// to ask for it; 0 means 10 seconds. The hub's writes for two bundles of one commit may be further apart than a
	// deployment takes.
	VolumeGrace time.Duration
	Clock       clock.Clock
	Log         logr.Logger
}

// Controller deploys the BundleDeployments of one cluster.
type Controller struct {
	options  Options
	hub      *hub.Hub
	member   *access.Member
	deployer *helm.Deployer
	observer *sight.Observer
	queue    workqueue.TypedRateLimitingInterface[string]

	roster     *roster.Roster
	handover   *handover.Ledger
	departures *removal.Departures
	remover    *removal.Remover

	mu      sync.Mutex
	entries map[string]*entry
}

// entry is what is known of one BundleDeployment between two passes. Only the pass at work on it, of
// which there is one at a time, reads and writes it; what others may touch is under Controller.mu.
type entry struct {
	name    string
	setHash string
	loaded  bool
	// found and record are the newest revision of its release.
	found  bool
	record releases.Record
	// options as they were when it was deployed, and view what is known of its objects.
	options fleet.BundleDeploymentOptions
	view    *sight.View
	// copied is the generation of the copies this process has made; nil before the first.
	copied *int64
	// moved are releases the bundle had before its release got another name or namespace.
	moved []releases.Record
	// spared are objects the release dropped that somebody else may want.
	spared []*unstructured.Unstructured
	// dropped is when that was found out, and kept what people are told of it.
	dropped time.Time
	kept    []string

	attempts pace.Attempts
	turns    pace.Turns
	reported hub.Reported
	// carrier is the merged object that the deployment was last seen in.
	carrier string

	// The following are guarded by Controller.mu.
	waits      bool // for dependencies
	leftBehind []releases.Record
}

// New returns a controller; Run starts it. Its watches on the member end with the context.
func New(ctx context.Context, from *hub.Hub, member *access.Member, deployer *helm.Deployer, options Options) (*Controller, error) {
	if options.Workers <= 0 {
		options.Workers = 50
	}
	if options.CollectEvery <= 0 {
		options.CollectEvery = 15 * time.Minute
	}
	if options.ConfirmAfter <= 0 {
		options.ConfirmAfter = 30 * time.Second
	}
	if options.VolumeGrace <= 0 {
		options.VolumeGrace = 10 * time.Second
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	c := &Controller{
		options: options, hub: from, member: member, deployer: deployer,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](200*time.Millisecond, time.Minute)),
		entries: map[string]*entry{},
	}
	var err error
	c.roster, err = roster.New(from, roster.Handlers{Changed: c.queue.Add, Moved: c.wakeDependents, Gone: c.gone}, options.Clock.Now)
	if err != nil {
		return nil, err
	}
	c.handover = handover.New(c.roster, options.VolumeGrace)
	doubt := removal.Doubt{ConfirmAfter: options.ConfirmAfter, HeldFor: options.CollectEvery}
	c.departures = removal.NewDepartures(from, doubt, options.Clock, options.Log)
	c.remover = removal.NewRemover(deployer, options.AgentNamespace, options.Log)
	changed := sight.Handlers{Set: c.objectChanged, Bundle: c.queue.Add}
	c.observer, err = sight.New(ctx, member, deployer, options.Clock, changed, options.Log)
	return c, err
}

// Run works until the context ends. While the hub is away it keeps trying to reach it.
func (c *Controller) Run(ctx context.Context) error {
	defer c.queue.ShutDown()
	if !c.roster.Start(ctx) {
		return nil
	}
	c.options.Log.Info("hub is listed", "deployments", len(c.roster.All()))
	c.collect(ctx) // before anything is deployed: what has lost its deployment lets go of what others want
	var workers sync.WaitGroup
	for range c.options.Workers {
		workers.Go(func() { c.work(ctx) })
	}
	workers.Go(func() { c.collectPeriodically(ctx) })
	<-ctx.Done()
	c.queue.ShutDown()
	workers.Wait()
	return nil
}

func (c *Controller) work(ctx context.Context) {
	for {
		name, stopped := c.queue.Get()
		if stopped {
			return
		}
		again, err := c.reconcile(ctx, name)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			c.options.Log.Error(err, "reconcile failed", "bundledeployment", name)
			c.queue.AddRateLimited(name)
		default:
			c.queue.Forget(name)
			if again > 0 {
				c.queue.AddAfter(name, again)
			}
		}
		c.queue.Done(name)
	}
}

// objectChanged is told by the watches on the member.
func (c *Controller) objectChanged(setHash string) {
	if name, known := c.roster.Owner(setHash); known {
		c.queue.Add(name)
	}
}

// entry returns what is known of a BundleDeployment, made when it is new.
func (c *Controller) entry(name string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.entries[name]; known != nil {
		return known
	}
	made := &entry{name: name, turns: pace.Turns{}, setHash: c.deployer.Claim(name, fleet.BundleDeploymentOptions{}).SetHash}
	made.view = c.observer.View(name, made.setHash)
	c.entries[name] = made
	c.roster.Own(made.setHash, name)
	return made
}

func (c *Controller) isKnown(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[name] != nil
}

// countKnown returns how many BundleDeployments are known, listed or not.
func (c *Controller) countKnown() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries)
}

func (c *Controller) forget(e *entry) {
	e.view.Close()
	c.handover.Forget(e.name)
	c.departures.Forget(e.name)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, e.name)
	c.roster.Disown(e.setHash)
}

// wake queues deployments.
func (c *Controller) wake(names []string) {
	for _, name := range names {
		c.queue.Add(name)
	}
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
