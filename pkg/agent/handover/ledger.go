package handover

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Deployments are those of the cluster, as they are known now.
type Deployments interface {
	// Get returns a deployment, nil when there is none.
	Get(name string) (*fleet.BundleDeployment, error)
	// Active returns the deployments that stay and for which the agent may change something.
	Active() []*fleet.BundleDeployment
	// Owner returns the name of the deployment that has an object set, false when none is known.
	Owner(setHash string) (name string, known bool)
}

// Ledger is what is known of objects that move. Its methods may be called from several goroutines.
type Ledger struct {
	deployments Deployments
	grace       time.Duration

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

// New returns a ledger. Volumes that are dropped wait for another owner for as long as the grace says.
func New(deployments Deployments, volumeGrace time.Duration) *Ledger {
	return &Ledger{
		deployments: deployments, grace: volumeGrace,
		settled: map[string]string{}, waiting: map[string]bool{}, holds: map[string]holding{}, contested: map[manifest.Key]contest{},
		releases: map[string]map[string]bool{}, retries: map[string]bool{}, leaving: map[string]time.Time{},
	}
}

// Tried notes that a deployment was attempted, and what it failed of, or that it needs no attempt.
func (l *Ledger) Tried(name, deploymentID string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled[name] = deploymentID
	if fault.ClassOf(err) == fault.Waiting {
		l.waiting[name] = true
	} else {
		delete(l.waiting, name)
	}
}

// Took notes the objects that a deployment's release has now. It returns the deployments that wait for what was let
// go, which may try again at once.
func (l *Ledger) Took(name, deploymentID string, objects []*unstructured.Unstructured) (wake []string) {
	keys := manifest.Held(objects)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled[name] = deploymentID
	delete(l.waiting, name)
	l.holds[name] = holding{deploymentID, keys}
	l.releaseTaken(name)
	for key, contest := range l.contested {
		switch {
		case contest.claimant == name:
			delete(l.contested, key)
		case contest.owner == name && !keys[key]:
			l.retries[contest.claimant] = true
			wake = append(wake, contest.claimant)
		}
	}
	return wake
}

// releaseTaken notes that a deployment waits for nobody's release any more.
func (l *Ledger) releaseTaken(claimant string) {
	for owner, claimants := range l.releases {
		delete(claimants, claimant)
		if len(claimants) == 0 {
			delete(l.releases, owner)
		}
	}
}

// MayRetry says, once, whether a deployment need not wait for its backoff, because something was let go for it.
func (l *Ledger) MayRetry(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	retry := l.retries[name]
	delete(l.retries, name)
	return retry
}

// Forget forgets a deployment that is gone.
func (l *Ledger) Forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.settled, name)
	delete(l.waiting, name)
	delete(l.holds, name)
	delete(l.retries, name)
	delete(l.leaving, name)
	delete(l.releases, name)
	l.releaseTaken(name)
	for key, contest := range l.contested {
		if contest.claimant == name {
			delete(l.contested, key)
		}
	}
}

// Yields returns, for a deployment, whether another set lets go of an object: its deployment is gone or
// going, or what it has deployed lacks the object. If not, the object is contested from now on.
func (l *Ledger) Yields(claimant string) func(setHash string, key manifest.Key) bool {
	return func(setHash string, key manifest.Key) bool {
		owner, known := l.deployments.Owner(setHash)
		if !known {
			return false
		}
		deployment, leaves := l.leaves(owner)
		if deployment == nil {
			return leaves
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		held, found := l.holds[owner]
		if found && held.deploymentID == deployment.Spec.DeploymentID && !held.keys[key] {
			return true
		}
		l.contested[key] = contest{owner: owner, claimant: claimant}
		return false
	}
}

// Leaves returns, for a deployment, whether another bundle's deployment is gone or being deleted. If not, the
// deployment waits for the other's release from now on.
func (l *Ledger) Leaves(claimant string) func(bundleID string) bool {
	return func(owner string) bool {
		deployment, leaves := l.leaves(owner)
		if deployment == nil {
			return leaves
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.releases[owner] == nil {
			l.releases[owner] = map[string]bool{}
		}
		l.releases[owner][claimant] = true
		return false
	}
}

// leaves returns the deployment of an owner that stays; or none, and whether it is known to be gone or going.
func (l *Ledger) leaves(owner string) (*fleet.BundleDeployment, bool) {
	deployment, err := l.deployments.Get(owner)
	switch {
	case err != nil:
		return nil, false
	case deployment == nil || deployment.DeletionTimestamp != nil:
		return nil, true
	}
	return deployment, false
}

// claimants returns the deployments that wait for something of an owner's.
func (l *Ledger) claimants(owner string) []string {
	names := slices.Collect(maps.Keys(l.releases[owner]))
	for _, contest := range l.contested {
		if contest.owner == owner {
			names = append(names, contest.claimant)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// claimantOf returns the deployment that waits for an object of an owner's, "" for none.
func (l *Ledger) claimantOf(owner string, key manifest.Key) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if contest, contested := l.contested[key]; contested && contest.owner == owner {
		return contest.claimant
	}
	return ""
}

// othersPending says whether another deployment has something new that was not tried yet.
func (l *Ledger) othersPending(name string) bool {
	active := l.deployments.Active()
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(active, func(other *fleet.BundleDeployment) bool {
		return other.Name != name && l.settled[other.Name] != other.Spec.DeploymentID
	})
}

// othersWaiting says whether another deployment waits for something before it can ask for anything.
func (l *Ledger) othersWaiting(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) > 1 || len(l.waiting) == 1 && !l.waiting[name]
}
