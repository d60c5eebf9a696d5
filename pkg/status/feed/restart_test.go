package feed

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// hub is a played hub: deployments, the statuses that are stored, and the process that writes them, which may
// be started anew at any time.
type hub struct {
	random *rand.Rand
	at     time.Time
	feed   *Feed
	// stored are the deployments, and statuses what the parents' statuses say of them.
	stored   map[tally.Ref]*fleet.BundleDeployment
	statuses map[tally.Parent]fleet.BundleSummary
	// events were not delivered yet, in the order in which they are.
	events []event
	// queue are the parents whose controllers were woken up.
	queue []tally.Parent
	// changed is when a deployment last changed.
	changed time.Time
}

// event is a version of a deployment that the process hears of at a time; gone for none.
type event struct {
	at     time.Time
	key    tally.Ref
	object *fleet.BundleDeployment
}

const playedClusters, playedBundles = 4, 3

func newHub(random *rand.Rand) *hub {
	h := &hub{random: random, at: begin, stored: map[tally.Ref]*fleet.BundleDeployment{}, statuses: map[tally.Parent]fleet.BundleSummary{}}
	h.start()
	return h
}

// parents are all there are, whether they have deployments or not.
func parents() []tally.Parent {
	var all []tally.Parent
	for i := range playedClusters {
		all = append(all, clusterNamed("c"+string(rune('0'+i))))
	}
	for i := range playedBundles {
		all = append(all, bundleNamed("b"+string(rune('0'+i))))
	}
	return all
}

// start begins a process with nothing but what is stored: its cache lists all deployments, its controllers
// look at every object, and neither waits for the other.
func (h *hub) start() {
	made, err := New(nil, nil, func() time.Time { return h.at })
	if err != nil {
		panic(err) // it has no registry that could refuse
	}
	h.feed, h.events, h.queue = made, nil, parents()
	for _, object := range h.stored {
		if h.random.IntN(4) == 0 {
			h.work()
		}
		h.feed.changed(object)
	}
	h.feed.open()
}

// change creates, changes or deletes some deployment.
func (h *hub) change(step int) {
	object := deployment(h.random.IntN(playedClusters), h.random.IntN(playedBundles), int64(step), h.random.IntN(2) == 0)
	key := keyOf(object)
	if h.random.IntN(4) == 0 {
		delete(h.stored, key)
		object = nil
	} else {
		h.stored[key] = object
	}
	// Some hear of it late; what concerns another deployment may overtake it.
	late := time.Duration(h.random.Int64N(int64(400 * time.Millisecond)))
	for _, queued := range h.events {
		if queued.key == key && queued.at.After(h.at.Add(late)) {
			late = queued.at.Sub(h.at)
		}
	}
	h.events = append(h.events, event{h.at.Add(late), key, object})
	h.changed = h.at.Add(late)
}

// deliver lets the process hear of what has come to it, and wakes its controllers up.
func (h *hub) deliver() {
	h.hear()
	due, _ := h.feed.calm.ready()
	h.queue = append(h.queue, due...)
}

// hear delivers events, some of them twice.
func (h *hub) hear() {
	kept := h.events[:0]
	for _, one := range h.events {
		if one.at.After(h.at) {
			kept = append(kept, one)
			continue
		}
		for range 1 + h.random.IntN(2) {
			if one.object == nil {
				h.feed.deleted(toolscache.DeletedFinalStateUnknown{Key: one.key.String()})
			} else {
				h.feed.changed(one.object)
			}
		}
	}
	h.events = kept
}

// work is one pass of a controller over the parent that waits first.
func (h *hub) work() {
	if len(h.queue) == 0 {
		return
	}
	parent := h.queue[0]
	h.queue = h.queue[1:]
	telling := h.feed.Telling(parent.Kind, parent.Namespace, parent.Name)
	rollup, counted := h.feed.Bundle(parent.Namespace, parent.Name)
	if parent.Kind == tally.KindCluster {
		rollup, counted = h.feed.Cluster(parent.Namespace, parent.Name)
	}
	if h.random.IntN(4) == 0 {
		h.hear() // something else meanwhile
	}
	switch {
	case !counted && parent.Kind == tally.KindCluster: // it keeps what it says until it is told that all are counted
	case !counted:
		h.queue = append(h.queue, parent) // it is tried again later
	case reflect.DeepEqual(rollup.Summary, h.statuses[parent]):
		telling.Nothing()
	case telling.May():
		h.statuses[parent] = rollup.Summary
	}
}

// Whatever happens to deployments, in whatever order and how often the process hears of it, and wherever it is
// killed and started anew: two seconds after it heard of the last change all statuses are exact.
func TestStatusesAreExactInTheEnd(t *testing.T) {
	for seed := range uint64(200) {
		h := newHub(rand.New(rand.NewPCG(seed, 5)))
		steps, density := 20+h.random.IntN(300), 1+h.random.IntN(20)
		restarts := 0
		for step := 0; step < steps || h.at.Sub(h.changed) < 2*time.Second; step++ {
			if step < steps && h.random.IntN(density) == 0 {
				for range 1 + h.random.IntN(4) {
					h.change(step)
				}
			}
			if step < steps && h.random.IntN(60) == 0 {
				h.start()
				h.changed = h.at // it hears of everything now
				restarts++
			}
			h.deliver()
			for range h.random.IntN(4) {
				h.work()
			}
			h.at = h.at.Add(grain)
		}
		wanted := tally.NewIndex()
		for key, object := range h.stored {
			wanted.Set(key, tally.Trim(object))
		}
		for _, parent := range parents() {
			if want := wanted.Of(parent).Summary; !reflect.DeepEqual(want, h.statuses[parent]) {
				t.Fatalf("seed %d, %d restarts: %s %s says %+v, counted %+v", seed, restarts, parent.Kind, parent, h.statuses[parent], want)
			}
		}
	}
}
