package interests

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// Bundle is what the last plan of a bundle depended on. Bundles.Of returns it.
type Bundle struct {
	// count is called for each plan, and awaits with the bundles that it waits for.
	count  func(evaluated, cached int)
	awaits func([]types.NamespacedName)
	// mutex is held by a pass over the bundle while it plans.
	mutex      sync.Mutex
	memory     target.Memory
	generation int64
	planned    bool
	// keys of cluster labels that decide; all says that any label or annotation may.
	keys map[string]bool
	all  bool
	// queued says that clusters wait for others to be ready, and lingering clusters for their schedule.
	queued    bool
	lingering []string
	// waitingSince is when plans began to wait for other bundles; zero when the last one does not.
	waitingSince time.Time
	// passing says that a pass reads what it plans on, and unseen are the changes that came since and that the
	// last plan did not care for: they may be missing in what was read, and the new plan may care. Then missed.
	passing, missed bool
	unseen          []clusterChange
}

// Begin starts a pass: what changes from now on may be missing in its snapshot.
func (b *Bundle) Begin() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.passing, b.missed, b.unseen = true, false, nil
}

// End ends a pass, and says whether its plan cares for a change that it may have missed.
func (b *Bundle) End() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.passing, b.unseen = false, nil
	return b.missed
}

// Plan plans a bundle with what is remembered of it, and remembers what the plan depended on.
func (b *Bundle) Plan(snapshot target.Snapshot) (target.Plan, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	snapshot.Memory = &b.memory
	plan, err := target.NewPlan(snapshot)
	b.count(b.memory.Evaluated, b.memory.Cached)
	if err != nil {
		b.planned = false
		return plan, err
	}
	if !b.planned || b.generation != snapshot.Bundle.Generation || target.RefersToGroups(&snapshot.Bundle.Spec) {
		keys, all, err := target.LabelKeys(snapshot.Bundle, snapshot.Groups)
		if err != nil {
			return plan, err
		}
		b.keys, b.all = make(map[string]bool, len(keys)), all
		for _, key := range keys {
			b.keys[key] = true
		}
	}
	b.planned, b.generation, b.queued = true, snapshot.Bundle.Generation, plan.Queued > 0
	b.lingering = plan.Lingering
	b.awaits(plan.Awaited)
	switch {
	case len(plan.Awaited) == 0:
		b.waitingSince = time.Time{}
	case b.waitingSince.IsZero():
		b.waitingSince = snapshot.Now
	}
	b.missed = b.missed || slices.ContainsFunc(b.unseen, b.caresFor)
	return plan, nil
}

// WaitingSince returns when the bundle's plans began to wait for other bundles; zero when the last one does not.
func (b *Bundle) WaitingSince() time.Time {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.waitingSince
}

// waits says that clusters of the bundle wait for others.
func (b *Bundle) waits() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.queued
}

// touchedBy says that a change may change the bundle's plan.
func (b *Bundle) touchedBy(bundle *fleet.Bundle, change clusterChange) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !b.planned || b.generation != bundle.Generation || b.caresFor(change) {
		return true
	}
	if b.passing {
		b.unseen = append(b.unseen, change)
	}
	return false
}

// caresFor says that the last plan would be another one after a change.
func (b *Bundle) caresFor(change clusterChange) bool {
	switch {
	case b.all && (len(change.labels) > 0 || change.values):
		return true
	case change.state && (b.memory.MayReach(change.cluster) || slices.Contains(b.lingering, change.cluster)):
		return true
	}
	for key := range change.labels {
		if b.keys[key] {
			return true
		}
	}
	return false
}

// clusterChange is what differs between two versions of a Cluster, as far as a plan may depend on it.
type clusterChange struct {
	// cluster is "namespace/name".
	cluster string
	// labels whose values differ.
	labels map[string]bool
	// values says that annotations or template values differ, which templates may look at.
	values bool
	// state says that what a plan needs to know of a cluster that it reaches differs.
	state bool
}

func (c clusterChange) none() bool { return len(c.labels) == 0 && !c.values && !c.state }

func changeOf(before, after *fleet.Cluster) clusterChange {
	was, is := target.InfoOf(before), target.InfoOf(after)
	change := clusterChange{cluster: is.Key(), labels: map[string]bool{}}
	for _, labels := range []map[string]string{was.Labels, is.Labels} {
		for key := range labels {
			old, had := was.Labels[key]
			value, has := is.Labels[key]
			if old != value || had != has {
				change.labels[key] = true
			}
		}
	}
	change.values = !maps.Equal(was.Annotations, is.Annotations) || !reflect.DeepEqual(was.TemplateValues, is.TemplateValues)
	change.state = was.DeploymentNamespace != is.DeploymentNamespace || was.Paused != is.Paused || was.Offline != is.Offline ||
		was.OffSchedule != is.OffSchedule || was.KubernetesVersion != is.KubernetesVersion || was.Protocol != is.Protocol ||
		was.Labelled() != is.Labelled() || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
	return change
}
