package feed

import (
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/status"
)

// terms say when an object is told of its changes.
type terms struct {
	// lead lets the first change after a calm time through at once.
	lead bool
	// least is between two tellings.
	least time.Duration
	// quiet is how long nothing must have changed before the numbers are told.
	quiet time.Duration
	// first is how long they may be kept back by changes that go on; each time that happens the time doubles,
	// up to longest.
	first, longest time.Duration
}

// What follows from one deployment's change is told to two or three parents, and a change of a bundle is one
// on every cluster: a Cluster that was told each time would be written as often as all of its deployments. So
// it waits until the wave is over. What people look at while they wait, Bundles and GitRepos, are told when
// the wave begins, and again while it goes on, ever more rarely.
var (
	ofSources  = terms{lead: true, least: time.Second, quiet: 700 * time.Millisecond, first: time.Second, longest: 8 * time.Second}
	ofClusters = terms{least: 0, quiet: 800 * time.Millisecond, first: 30 * time.Second, longest: time.Minute}
)

func termsOf(kind status.ParentKind) terms {
	if kind == status.KindCluster {
		return ofClusters
	}
	return ofSources
}

const (
	// waveFrom is how many changes a second make a wave. In a wave clusters wait until nothing changes
	// anywhere: the wave comes to each of them several times.
	waveFrom = 50
	// grain is the shortest time between two looks at what is due.
	grain = 20 * time.Millisecond
	// remembered is how long an object that is calm is remembered.
	remembered = time.Minute
)

// object is what is known of one parent.
type object struct {
	// since is the first change that it was not told of, zero when it was told of all; last is the newest one.
	since, last time.Time
	// changes is the number of the newest change.
	changes int64
	// told is when it was last told.
	told time.Time
	// hold is how long it may be kept back next.
	hold time.Duration
	// woken says that its controller was woken up for what it was not told of.
	woken bool
}

// calm decides when the controllers of parents are woken up and may write: soon after a single change, rarely
// while changes come in waves, and always after the last one. It knows nothing of queues.
type calm struct {
	now func() time.Time

	mutex   sync.Mutex
	objects map[status.Parent]*object
	// pending are those that are to be woken up.
	pending map[status.Parent]*object
	changes int64
	// newest is the newest change of anything; the counts are those of the second that began at second, and
	// of the one before.
	newest, second  time.Time
	count, previous int
	// swept is when objects that are calm were last dropped.
	swept time.Time
}

func newCalm(now func() time.Time) *calm {
	return &calm{now: now, objects: map[status.Parent]*object{}, pending: map[status.Parent]*object{}}
}

// changed notes a change of some parents.
func (c *calm) changed(parents ...status.Parent) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.now()
	c.tick(now)
	c.newest = now
	c.count++
	for _, parent := range parents {
		o := c.wait(parent, now)
		c.changes++
		o.changes, o.last, o.woken = c.changes, now, false
	}
	c.sweep(now)
}

// tick moves the counts on.
func (c *calm) tick(now time.Time) {
	switch passed := now.Sub(c.second); {
	case passed >= 2*time.Second:
		c.second, c.previous, c.count = now, 0, 0
	case passed >= time.Second:
		c.second, c.previous, c.count = now, c.count, 0
	}
}

// wait lets a parent wait to be told.
func (c *calm) wait(parent status.Parent, now time.Time) *object {
	o := c.objects[parent]
	if o == nil {
		o = &object{hold: termsOf(parent.Kind).first}
		c.objects[parent] = o
	}
	if o.since.IsZero() {
		o.since, o.last = now, now
	}
	c.pending[parent] = o
	return o
}

// due is when a parent that was not told of everything is to be told.
func (c *calm) due(parent status.Parent, o *object, now time.Time) time.Time {
	t := termsOf(parent.Kind)
	if t.lead {
		if o.told.IsZero() || o.since.Sub(o.told) >= 2*t.least {
			return o.since
		}
		return earlier(later(o.last.Add(t.quiet), o.told.Add(t.least)), o.told.Add(o.hold))
	}
	quiet := o.last
	c.tick(now)
	if max(c.count, c.previous) >= waveFrom {
		quiet = c.newest
	}
	return earlier(quiet.Add(t.quiet), o.since.Add(o.hold))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ready returns the parents that are to be woken up now, each once for what it was not told of, and how long
// it takes until others are; zero when there are none.
func (c *calm) ready() (due []status.Parent, next time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.now()
	for parent, o := range c.pending {
		wait := c.due(parent, o, now).Sub(now)
		if wait <= 0 {
			o.woken = true
			delete(c.pending, parent)
			due = append(due, parent)
			continue
		}
		if next == 0 || wait < next {
			next = wait
		}
	}
	return due, next
}

// mark returns the number of the newest change of a parent. Whoever reads its numbers afterwards knows of
// that change.
func (c *calm) mark(parent status.Parent) int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if o := c.objects[parent]; o != nil {
		return o.changes
	}
	return 0
}

// tell says that a parent may be told numbers that were read after a mark, and takes note that it is. When it
// may not, it will be woken up for them.
func (c *calm) tell(parent status.Parent, mark int64) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.now()
	o := c.objects[parent]
	if o == nil || o.since.IsZero() {
		o = c.wait(parent, now)
	}
	if !o.woken && c.due(parent, o, now).After(now) {
		return false
	}
	o.hold = c.nextHold(parent, o, now)
	o.told = now
	c.settle(parent, o, mark)
	return true
}

// nextHold is how long a parent that is told now may be kept back the next time: longer while changes go on.
func (c *calm) nextHold(parent status.Parent, o *object, now time.Time) time.Duration {
	t := termsOf(parent.Kind)
	if now.Sub(o.last) < t.quiet && now.Sub(o.told) <= 2*o.hold {
		return min(2*o.hold, t.longest)
	}
	return t.first
}

// rest takes note that a parent says already what was read after a mark.
func (c *calm) rest(parent status.Parent, mark int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if o := c.objects[parent]; o != nil && o.changes == mark {
		c.settle(parent, o, mark)
	}
}

// settle ends the wait of a parent, or begins it anew when it has changed since the mark.
func (c *calm) settle(parent status.Parent, o *object, mark int64) {
	if o.changes != mark {
		o.since, o.woken = o.last, false
		c.pending[parent] = o
		return
	}
	o.since, o.woken = time.Time{}, false
	delete(c.pending, parent)
}

// sweep keeps the map from growing with everything that ever changed.
func (c *calm) sweep(now time.Time) {
	if len(c.objects) < 4096 || now.Sub(c.swept) < remembered {
		return
	}
	c.swept = now
	for parent, o := range c.objects {
		if o.since.IsZero() && now.Sub(o.told) > remembered {
			delete(c.objects, parent)
		}
	}
}
