package feed

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
	"github.com/fairlead-dev/fairlead/pkg/telemetry"
)

// Feed is the roll-up of a hub. Make one with New and add it to the manager.
type Feed struct {
	informers cache.Informers
	calm      *calm
	tellings  *prometheus.CounterVec
	// stirred wakes up the loop that wakes up controllers.
	stirred chan struct{}

	mutex  sync.Mutex
	index  *tally.Index
	synced bool
	// generations of the deployments that are counted.
	generations map[tally.Ref]int64
	// early are the parents of what came before everything was delivered, and those that were asked for.
	early  map[tally.Parent]bool
	queues map[tally.ParentKind]workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New returns a feed whose metrics go to a registry, nil for none.
func New(informers cache.Informers, registry prometheus.Registerer, now func() time.Time) (*Feed, error) {
	tellings, err := telemetry.Counter(registry, "fleet_rollup_tellings_total",
		"Times that the numbers of an object's deployments differed from its status: told, or held because more changes come.", "kind", "result")
	if err != nil {
		return nil, err
	}
	return &Feed{
		informers:   informers,
		tellings:    tellings,
		calm:        newCalm(now),
		stirred:     make(chan struct{}, 1),
		index:       tally.NewIndex(),
		generations: map[tally.Ref]int64{},
		early:       map[tally.Parent]bool{},
		queues:      map[tally.ParentKind]workqueue.TypedRateLimitingInterface[reconcile.Request]{},
	}, nil
}

// Source delivers the objects of a kind whose numbers changed; one controller may use it.
func (f *Feed) Source(kind tally.ParentKind) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.queues[kind] = queue
		return nil
	})
}

// Start counts until the context ends.
func (f *Feed) Start(ctx context.Context) error {
	informer, err := f.informers.GetInformer(ctx, &fleet.BundleDeployment{})
	if err != nil {
		return fmt.Errorf("watch bundledeployments: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    f.changed,
		UpdateFunc: func(_, object any) { f.changed(object) },
		DeleteFunc: f.deleted,
	})
	if err != nil {
		return fmt.Errorf("watch bundledeployments: %w", err)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil
	}
	f.open()
	f.wake(ctx)
	return nil
}

// open gives the numbers out from now on and lets every controller know of all it has.
func (f *Feed) open() {
	f.mutex.Lock()
	f.synced = true
	var all []affected
	for parent := range f.early {
		all = append(all, affected{Parent: parent, awaits: f.index.Awaits(parent)})
	}
	f.early = nil
	f.mutex.Unlock()
	f.announce(all)
}

func (f *Feed) changed(object any) {
	deployment, ok := object.(*fleet.BundleDeployment)
	if !ok {
		return
	}
	key, record := keyOf(deployment), tally.Trim(deployment)
	f.count(func(index *tally.Index) (parents []tally.Parent, answered bool) {
		before, known := f.generations[key]
		f.generations[key] = deployment.Generation
		return index.Set(key, record), known && before == deployment.Generation
	})
}

func (f *Feed) deleted(object any) {
	key, ok := deletedKey(object)
	if !ok {
		return
	}
	f.count(func(index *tally.Index) (parents []tally.Parent, answered bool) {
		delete(f.generations, key)
		return index.Delete(key), false
	})
}

// deletedKey names a deleted deployment; of one whose deletion was missed the name may be all that is known.
func deletedKey(object any) (tally.Ref, bool) {
	switch gone := object.(type) {
	case *fleet.BundleDeployment:
		return keyOf(gone), true
	case toolscache.DeletedFinalStateUnknown:
		namespace, name, err := toolscache.SplitMetaNamespaceKey(gone.Key)
		return tally.Ref{Namespace: namespace, Name: name}, err == nil
	}
	return tally.Ref{}, false
}

// count changes the index and lets the affected controllers know, later if not everything is counted yet. A change
// returns whom it affects, and whether it is an agent's answer.
func (f *Feed) count(change func(*tally.Index) (parents []tally.Parent, answered bool)) {
	f.mutex.Lock()
	var announced []affected
	parents, answered := change(f.index)
	for _, parent := range parents {
		if f.synced {
			announced = append(announced, affected{parent, f.index.Awaits(parent), answered})
		} else {
			f.early[parent] = true
		}
	}
	f.mutex.Unlock()
	f.announce(announced)
}

func keyOf(deployment *fleet.BundleDeployment) tally.Ref {
	return tally.Ref{Namespace: deployment.Namespace, Name: deployment.Name}
}

// announce lets parents be woken up in their time.
func (f *Feed) announce(parents []affected) {
	if len(parents) == 0 {
		return
	}
	f.calm.changed(parents...)
	f.stir()
}

func (f *Feed) stir() {
	select {
	case f.stirred <- struct{}{}:
	default: // the loop will look anyway
	}
}

// wake wakes up the controllers of what is due until the context ends.
func (f *Feed) wake(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-pause.C: // a grain has passed
		}
		due, next := f.calm.ready()
		for _, parent := range due {
			f.enqueue(parent)
		}
		later := time.NewTimer(next)
		if next == 0 {
			later.Stop()
		}
		select {
		case <-ctx.Done():
		case <-f.stirred:
		case <-later.C:
		}
		later.Stop()
		pause.Reset(grain)
	}
}

func (f *Feed) enqueue(parent tally.Parent) {
	f.mutex.Lock()
	queue := f.queues[parent.Kind]
	f.mutex.Unlock()
	if queue != nil {
		queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: parent.Namespace, Name: parent.Name}})
	}
}

// Changed lets a parent be woken up in its time for a change that is not one of its deployments, so that
// both together wake it up once.
func (f *Feed) Changed(kind tally.ParentKind, namespace, name string) {
	f.calm.touched(tally.Parent{Kind: kind, Ref: tally.Ref{Namespace: namespace, Name: name}})
	f.stir()
}

// Telling is the question whether a parent's status may be written. Ask for it before its numbers are read.
// The zero value allows everything.
type Telling struct {
	feed   *Feed
	parent tally.Parent
	mark   int64
}

// Telling returns the question for a parent.
func (f *Feed) Telling(kind tally.ParentKind, namespace, name string) Telling {
	parent := tally.Parent{Kind: kind, Ref: tally.Ref{Namespace: namespace, Name: name}}
	return Telling{feed: f, parent: parent, mark: f.calm.mark(parent)}
}

// May says that the numbers may be told now, and takes note that they are. When they may not, the parent's
// controller will be woken up for them.
func (t Telling) May() bool { return t.tell(false) }

// Must takes note that the numbers are told with something that does not wait.
func (t Telling) Must() { t.tell(true) }

func (t Telling) tell(urgent bool) bool {
	if t.feed == nil {
		return true
	}
	may, result := t.feed.calm.tell(t.parent, t.mark, urgent), "told"
	if !may {
		result = "held"
		t.feed.stir()
	}
	t.feed.tellings.WithLabelValues(string(t.parent.Kind), result).Inc()
	return may
}

// Nothing takes note that the status says already what there is to say.
func (t Telling) Nothing() {
	if t.feed != nil {
		t.feed.calm.rest(t.parent, t.mark)
	}
}

// counted says that everything is counted. Who asks earlier is woken up then: what is left may be nothing, of which
// no deployment tells.
func (f *Feed) counted(parent tally.Parent) bool {
	if !f.synced {
		f.early[parent] = true
	}
	return f.synced
}

// Bundle returns the roll-up of a Bundle's deployments; ok is false until everything is counted.
func (f *Feed) Bundle(namespace, name string) (rollup tally.Rollup, ok bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	parent := tally.Parent{Kind: tally.KindBundle, Ref: tally.Ref{Namespace: namespace, Name: name}}
	if !f.counted(parent) {
		return tally.Rollup{}, false
	}
	return f.index.Of(parent), true
}

// Covers says that the given deployments, or newer versions of their specs, are counted. A controller that
// reads deployments elsewhere asks before it tells numbers that would be older than what it read.
func (f *Feed) Covers(deployments []*fleet.BundleDeployment) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, deployment := range deployments {
		if counted, ok := f.generations[keyOf(deployment)]; !ok || counted < deployment.Generation {
			return false
		}
	}
	return true
}

// Cluster returns the roll-up of a Cluster's deployments; ok is false until everything is counted.
func (f *Feed) Cluster(namespace, name string) (rollup tally.Rollup, ok bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	parent := tally.Parent{Kind: tally.KindCluster, Ref: tally.Ref{Namespace: namespace, Name: name}}
	if !f.counted(parent) {
		return tally.Rollup{}, false
	}
	return f.index.Of(parent), true
}

// Repo is the roll-up of a GitRepo's deployments with its lists of objects and clusters.
type Repo struct {
	Rollup     tally.Rollup
	Resources  []fleet.Resource
	PerCluster map[string]*fleet.ResourceCounts
}

// GitRepo returns the roll-up of a GitRepo's deployments; ok is false until everything is counted.
func (f *Feed) GitRepo(namespace, name string) (repo Repo, ok bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	parent := tally.Parent{Kind: tally.KindGitRepo, Ref: tally.Ref{Namespace: namespace, Name: name}}
	if !f.counted(parent) {
		return Repo{}, false
	}
	return Repo{
		Rollup:     f.index.Of(parent),
		Resources:  f.index.Resources(parent),
		PerCluster: f.index.PerCluster(parent),
	}, true
}
