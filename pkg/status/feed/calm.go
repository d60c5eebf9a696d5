package feed

import (
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// terms say when an object is told of its changes.
type terms struct {
	// lead is how soon the first change after a calm time is told, 0 when it waits for quiet like all others.
	// It is long enough to see whether a wave begins.
	lead time.Duration
	// least is between two tellings.
	least time.Duration
	// quiet is how long nothing of the object must have changed before it is told, and patient the same while
	// agents are to answer.
	quiet, patient time.Duration
	// calm and rough are how long it may be kept back by changes that go on, while they are few and in a wave.
	calm, rough hold
	// done is how long nothing of an object must have changed that a wave has gone past, before it is told although
	// the wave goes on elsewhere; silent is the same while its agent is to answer and has not begun to; seldom is the
	// least time since it was told last. All are 0 when it waits for the wave's end.
	done, silent, seldom time.Duration
}

// hold is a time that doubles with each telling that it forces, up to longest.
type hold struct{ first, longest time.Duration }

func (h hold) after(times int) time.Duration {
	wait := h.first
	for range times {
		if wait = min(2*wait, h.longest); wait == h.longest {
			break
		}
	}
	return wait
}

// What follows from one deployment's change is told to two or three parents, and a change of a bundle is one
// on every cluster: a Cluster that was told each time would be written as often as all of its deployments. So
// it waits until the wave is over, or has gone past it: nothing is left to be written for it, nor for its agent to
// answer. Thousands of Clusters that are all told at the end would be late. What people look at while they wait,
// Bundles and GitRepos, are told now and then while it goes on, ever more rarely; so are ClusterGroups, which change
// whenever one of their Clusters is told.
var (
	ofSources = terms{
		lead: 150 * time.Millisecond, least: time.Second, quiet: 400 * time.Millisecond, patient: 800 * time.Millisecond,
		calm: hold{time.Second, 8 * time.Second}, rough: hold{15 * time.Second, 2 * time.Minute},
	}
	ofClusters = terms{
		quiet: 400 * time.Millisecond, patient: 800 * time.Millisecond,
		calm: hold{30 * time.Second, time.Minute}, rough: hold{5 * time.Minute, 10 * time.Minute},
		done: time.Second, silent: 3 * time.Second, seldom: 15 * time.Second,
	}
)

func termsOf(kind tally.ParentKind) *terms {
	if kind == tally.KindCluster {
		return &ofClusters
	}
	return &ofSources
}

const (
	// grain is the shortest time between two looks at what is due.
	grain = 50 * time.Millisecond
	// writesLast is how long a write that is under way is waited for when nothing else happens.
	writesLast = 5 * time.Second
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
	// forced is how often in a row it was told although its changes went on.
	forced int
	// awaits says that agents are to answer for some of its deployments, and answered that some did since it was told.
	awaits, answered bool
	// woken says that its controller was woken up for what it was not told of, and did not ask yet.
	woken bool
}

// calm decides when the controllers of parents are woken up and may write: soon after a single change, rarely
// while changes come in waves, and always after the last one. It knows nothing of queues.
type calm struct {
	now func() time.Time

	mutex   sync.Mutex
	objects map[tally.Parent]*object
	// waiting are those that were not told of everything.
	waiting map[tally.Parent]*object
	changes int64
	wave    wave
	// writing counts the works under way that will bring changes, all and by the parents that are known.
	writing  int
	expected map[tally.Parent]int
	// swept is when objects that are calm were last dropped.
	swept time.Time
}

func newCalm(now func() time.Time) *calm {
	return &calm{
		now: now, objects: map[tally.Parent]*object{}, waiting: map[tally.Parent]*object{}, expected: map[tally.Parent]int{},
	}
}

// began notes the beginning of a work that brings changes, and to whom; ended that it is over. In between come says
// that a parent has got its own.
func (c *calm) began(parents ...tally.Parent) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.writing++
	for _, parent := range parents {
		c.expected[parent]++
	}
}

func (c *calm) come(parent tally.Parent) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.expected[parent]--; c.expected[parent] <= 0 {
		delete(c.expected, parent)
	}
}

func (c *calm) ended() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.writing--
}

// affected is a parent that has changed. awaits says that agents are to answer for some of its deployments now, and
// answered that this change is such an answer.
type affected struct {
	tally.Parent
	awaits, answered bool
}

// changed notes a change of a deployment for its parents.
func (c *calm) changed(parents ...affected) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.now()
	c.wave.changed(now)
	for _, parent := range parents {
		o := c.touch(parent.Parent, now)
		o.awaits, o.answered = parent.awaits, o.answered || parent.answered
	}
	c.sweep(now)
}

// touched notes a change of a parent itself: that is no part of a wave.
func (c *calm) touched(parent tally.Parent) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.now()
	c.touch(parent, now)
	c.sweep(now)
}

func (c *calm) touch(parent tally.Parent, now time.Time) *object {
	o := c.wait(parent, now)
	c.changes++
	o.changes, o.last, o.woken = c.changes, now, false
	return o
}

// wait lets a parent wait to be told.
func (c *calm) wait(parent tally.Parent, now time.Time) *object {
	o := c.objects[parent]
	if o == nil {
		o = &object{}
		c.objects[parent] = o
	}
	if o.since.IsZero() {
		o.since, o.last = now, now
	}
	c.waiting[parent] = o
	return o
}

// due is when a parent that was not told of everything is to be told, as things are now. forced says that
// its changes go on even then.
func (c *calm) due(parent tally.Parent, o *object, now time.Time) (at time.Time, forced bool) {
	t := termsOf(parent.Kind)
	held, limit := later(o.since, o.told), t.calm.after(o.forced)
	pause := t.quiet
	if o.awaits {
		pause = t.patient
	}
	quiet, over := o.last.Add(pause), c.wave.newest.Add(pause)
	if c.writing > 0 {
		over = c.wave.newest.Add(writesLast)
	}
	switch {
	case c.wave.on && now.Before(over):
		quiet, limit = earlier(over, c.past(parent, o, over)), t.rough.after(o.forced)
	case t.lead > 0 && o.since.Sub(o.told) >= 2*t.least:
		quiet = o.since.Add(t.lead)
	}
	quiet, held = later(quiet, o.told.Add(t.least)), held.Add(limit)
	if quiet.After(now) && held.Before(quiet) {
		return held, true
	}
	return quiet, false
}

// past is when a parent is told that the wave has gone past: it has got all that is being written, and its agent has
// answered all of it, or not begun to. For others it is when the wave is over.
func (c *calm) past(parent tally.Parent, o *object, over time.Time) time.Time {
	t := termsOf(parent.Kind)
	pause := t.done
	switch {
	case pause == 0, c.expected[parent] > 0, o.awaits && o.answered:
		return over
	case o.awaits:
		pause = t.silent
	}
	return later(o.last.Add(pause), o.told.Add(t.seldom))
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
func (c *calm) ready() (due []tally.Parent, next time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.now()
	for parent, o := range c.waiting {
		if o.woken {
			continue
		}
		at, _ := c.due(parent, o, now)
		wait := at.Sub(now)
		if wait <= 0 {
			o.woken = true
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
func (c *calm) mark(parent tally.Parent) int64 {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if o := c.objects[parent]; o != nil {
		return o.changes
	}
	return 0
}

// tell says that a parent may be told numbers that were read after a mark, and takes note that it is. When it
// may not, because the wave that seemed to be over goes on, it will be woken up for them. What is urgent may
// always be told.
func (c *calm) tell(parent tally.Parent, mark int64, urgent bool) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.now()
	o := c.wait(parent, now)
	o.woken = false
	at, forced := c.due(parent, o, now)
	if !urgent && at.After(now) {
		return false
	}
	switch {
	case !forced:
		o.forced = 0
	case !urgent:
		o.forced++
	}
	o.told, o.answered = now, false
	c.settle(parent, o, mark)
	return true
}

// rest takes note that a parent says already what was read after a mark.
func (c *calm) rest(parent tally.Parent, mark int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if o := c.objects[parent]; o != nil {
		o.woken = false
		if o.changes == mark {
			c.settle(parent, o, mark)
		}
	}
}

// settle ends the wait of a parent, or begins it anew when it has changed since the mark.
func (c *calm) settle(parent tally.Parent, o *object, mark int64) {
	if o.changes != mark {
		o.since = o.last
		return
	}
	o.since = time.Time{}
	delete(c.waiting, parent)
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
