package carrier

import (
	"context"
	"hash/crc32"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/shard"
)

const (
	// quiet is how long a write waits for others after the newest of them, and most after the first.
	quiet = 100 * time.Millisecond
	most  = 250 * time.Millisecond
	// underWay is how many objects are written at a time; while there are more to write, they gather.
	underWay = 16
	// patience is how long a write may take with what it waits for.
	patience = time.Minute
)

// change is what is to become of one part.
type change struct {
	name string
	// part is as it will be, and before as it was.
	part, before fleet.DeploymentPart
	// place and labels are given for a part that is new in its group, with its size.
	place  *merge.Place
	labels map[string]string
	size   int
	// in is the object, for others: patch changes the part there, drop removes it.
	in    string
	patch map[string]any
	drop  bool

	done   chan struct{}
	err    error
	object *fleet.BundleDeployment
}

// group names what is written together: the changes of a namespace under one claim for one place.
type group struct {
	namespace, first string
	claim            any
}

// batch are changes of a group that wait.
type batch struct {
	changes []*change
	began   time.Time
	last    time.Time
}

type batches struct {
	mutex *sync.Mutex
	open  map[group]*batch
	slots chan struct{}
	// stripes keep two batches of one group apart.
	stripes *[64]sync.Mutex
	// stale are the marks that the last write of an object has left without need; the next one takes them off.
	stale map[types.NamespacedName][]string
}

func newBatches() batches {
	return batches{
		mutex: &sync.Mutex{}, open: map[group]*batch{}, slots: make(chan struct{}, underWay), stripes: &[64]sync.Mutex{},
		stale: map[types.NamespacedName][]string{},
	}
}

func (b batches) takeStale(object types.NamespacedName) []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	stale := b.stale[object]
	delete(b.stale, object)
	return stale
}

func (b batches) noteStale(object types.NamespacedName, stale []string) {
	if len(stale) == 0 {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.stale[object] = stale
}

// change waits until a change of a deployment was written, together with others.
func (w *Writer) change(ctx context.Context, deployment *fleet.BundleDeployment, c *change) error {
	c.name, c.done = deployment.Name, make(chan struct{})
	g := group{namespace: deployment.Namespace, first: c.in, claim: shard.Claim(ctx)}
	if c.place != nil {
		g.first = c.place.Name(0)
	}
	now := time.Now()
	w.batches.mutex.Lock()
	b := w.batches.open[g]
	if b == nil {
		b = &batch{began: now}
		w.batches.open[g] = b
		go w.run(ctx, g, b)
	}
	b.changes, b.last = append(b.changes, c), now
	w.batches.mutex.Unlock()
	<-c.done // also when the context has ended: nothing of this may be under way when the claim is passed on
	if c.err == nil && c.object != nil {
		deployment.ResourceVersion = c.object.ResourceVersion
	}
	return c.err
}

// run writes a batch when its time has come. Until then it grows. Its context is that of the first who waits; all
// others work under the same claim.
func (w *Writer) run(ctx context.Context, g group, b *batch) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait := quiet; wait > 0 && ctx.Err() == nil; wait = w.wait(b) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	w.batches.slots <- struct{}{}
	defer func() { <-w.batches.slots }()
	stripe := &w.batches.stripes[crc32.ChecksumIEEE([]byte(g.namespace+"/"+g.first))%uint32(len(w.batches.stripes))]
	stripe.Lock()
	defer stripe.Unlock()
	w.batches.mutex.Lock()
	delete(w.batches.open, g)
	changes := b.changes
	w.batches.mutex.Unlock()
	w.write(ctx, g.namespace, changes)
	for _, c := range changes {
		close(c.done)
	}
}

func (w *Writer) wait(b *batch) time.Duration {
	w.batches.mutex.Lock()
	defer w.batches.mutex.Unlock()
	now := time.Now()
	return min(b.last.Add(quiet).Sub(now), b.began.Add(most).Sub(now))
}
