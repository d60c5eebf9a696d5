package feed

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func bundleNamed(name string) tally.Parent {
	return tally.Parent{Kind: tally.KindBundle, Ref: tally.Ref{Namespace: "ws", Name: name}}
}

func clusterNamed(name string) tally.Parent {
	return tally.Parent{Kind: tally.KindCluster, Ref: tally.Ref{Namespace: "ws", Name: name}}
}

// played is a calm with controllers that write what they are woken up for.
type played struct {
	*calm
	at time.Time
	// counts are what there is to say of each parent, and says what its status says.
	counts, says map[tally.Parent]int
	// told is when each parent was told.
	told map[tally.Parent][]time.Duration
	// queue are the parents whose controllers were woken up; slots is for how many of them there is time in a
	// grain, 0 for all.
	queue []tally.Parent
	slots int
}

func play() *played {
	p := &played{at: begin, counts: map[tally.Parent]int{}, says: map[tally.Parent]int{}, told: map[tally.Parent][]time.Duration{}}
	p.calm = newCalm(func() time.Time { return p.at })
	return p
}

// change is one of a deployment: it adds to the counts of its parents.
type change struct {
	parents []tally.Parent
	by      int
	// awaits says that agents are to answer for some deployments of the parents afterwards.
	awaits bool
	step
}

// step is what happens to a deployment.
type step int

const (
	touched step = iota
	// written by a work that was announced.
	written
	// answered by its agent.
	answered
)

// until lets time pass in grains; changes says what changes in each of them, one after the other.
func (p *played) until(end time.Duration, changes func(at time.Duration) []change) {
	for ; p.at.Sub(begin) < end; p.at = p.at.Add(grain) {
		for _, changed := range changes(p.at.Sub(begin)) {
			var told []affected
			for _, parent := range changed.parents {
				p.counts[parent] += changed.by
				told = append(told, affected{parent, changed.awaits, changed.step == answered})
				if changed.step == written && parent.Kind == tally.KindCluster {
					p.come(parent)
				}
			}
			p.changed(told...)
		}
		due, _ := p.ready()
		p.queue = append(p.queue, due...)
		for n := 0; len(p.queue) > 0 && (p.slots == 0 || n < p.slots); p.queue = p.queue[1:] {
			if p.work(p.queue[0]) {
				n++
			}
		}
	}
}

// work is one pass of a controller, and says whether it wrote.
func (p *played) work(parent tally.Parent) bool {
	switch mark := p.mark(parent); {
	case p.says[parent] == p.counts[parent]:
		p.rest(parent, mark)
	case p.tell(parent, mark, false):
		p.says[parent] = p.counts[parent]
		p.told[parent] = append(p.told[parent], p.at.Sub(begin))
		return true
	}
	return false
}

// tellings counts how often parents of a kind were told.
func (p *played) tellings(kind tally.ParentKind) int {
	all := 0
	for parent, told := range p.told {
		if parent.Kind == kind {
			all += len(told)
		}
	}
	return all
}

func nothing(time.Duration) []change { return nil }

func TestASingleChange(t *testing.T) {
	p := play()
	bundle, cluster := bundleNamed("b"), clusterNamed("c")
	p.until(5*time.Second, func(at time.Duration) []change {
		if at == 0 {
			return []change{{[]tally.Parent{bundle, cluster}, 1, false, touched}}
		}
		return nil
	})
	if got := p.told[bundle]; len(got) != 1 || got[0] > 200*time.Millisecond {
		t.Errorf("the bundle is told at %v, want almost at once", got)
	}
	if got := p.told[cluster]; len(got) != 1 || got[0] > time.Second {
		t.Errorf("the cluster is told at %v, want within a second", got)
	}
}

// waved is what goes through a fleet of bundles on clusters: every pair is written, if anything is, and its agent
// answers, if any does, by which the numbers become what they were. Bundles are written cluster by cluster, one a
// little before the other; agents answer in any order.
type waved struct {
	bundles, clusters int
	// writes and answers are how long each of them takes.
	writes, answers time.Duration
}

// begin announces the writes.
func (w waved) begin(p *played) {
	var expected []tally.Parent
	for c := range w.clusters {
		for range w.bundles {
			expected = append(expected, clusterNamed(strconv.Itoa(c)))
		}
	}
	p.began(expected...)
}

// changes returns what changes in the grain at a time.
func (w waved) changes() func(time.Duration) []change {
	random := rand.New(rand.NewPCG(1, 1))
	at := map[time.Duration][]change{}
	happens := func(when time.Duration, one change) {
		when = when.Truncate(grain)
		at[when] = append(at[when], one)
	}
	owed := map[tally.Parent]int{}
	for b := range w.bundles {
		for c := range w.clusters {
			parents := []tally.Parent{bundleNamed(strconv.Itoa(b)), clusterNamed(strconv.Itoa(c))}
			when := time.Duration(0)
			if w.writes > 0 {
				when = w.writes*time.Duration(c)/time.Duration(w.clusters) - time.Duration(random.Int64N(int64(time.Second)))
				when = max(when, 0)
				happens(when, change{parents, 1, true, written})
			} else {
				owed[parents[0]]++
				owed[parents[1]]++
			}
			if w.answers > 0 {
				happens(when+time.Duration(random.Int64N(int64(w.answers))), change{parents, -1, true, answered})
			}
		}
	}
	return func(now time.Duration) []change {
		var single []change
		for _, one := range at[now] {
			for _, parent := range one.parents {
				if one.step == answered {
					owed[parent]--
				} else {
					owed[parent]++
				}
				single = append(single, change{[]tally.Parent{parent}, one.by, owed[parent] > 0, one.step})
			}
		}
		return single
	}
}

// A wave of bundles over clusters is told with few writes: each Cluster whose numbers differ in the end once,
// each Bundle then and now and then before; and everything within two seconds of the last change.
func TestAWave(t *testing.T) {
	for name, test := range map[string]struct {
		waved
		// slots are statuses that the API server takes in a grain.
		slots int
		// The most tellings of each kind.
		ofBundles, ofClusters int
	}{
		"a fan-out":                          {waved{20, 200, 14 * time.Second, 0}, 10, 20, 200},
		"everybody reports":                  {waved{20, 200, 0, 25 * time.Second}, 10, 40, 200},
		"a change that leaves all as it was": {waved{20, 200, 50 * time.Second, time.Second}, 10, 60, 0},
		"agents that take their time":        {waved{20, 200, 50 * time.Second, 10 * time.Second}, 10, 60, 0},
		"a fan-out to a thousand clusters":   {waved{50, 1000, time.Minute, 0}, 10, 250, 1000},
		"a slow change of many clusters":     {waved{50, 400, 10 * time.Minute, 5 * time.Second}, 0, 400, 800},
		"few on a few":                       {waved{3, 3, time.Second, time.Second}, 1, 9, 6},
	} {
		t.Run(name, func(t *testing.T) {
			p := play()
			p.slots = test.slots
			changes := test.changes()
			test.begin(p)
			p.until(test.writes, changes)
			p.ended()
			p.until(test.writes+test.answers+2*time.Second, changes)
			for parent, count := range p.counts {
				if p.says[parent] != count {
					t.Errorf("%s %s says %d two seconds after the end, want %d", parent.Kind, parent, p.says[parent], count)
				}
			}
			if bundles, clusters := p.tellings(tally.KindBundle), p.tellings(tally.KindCluster); bundles > test.ofBundles || clusters > test.ofClusters {
				t.Errorf("bundles are told %d times, clusters %d; want %d and %d at most", bundles, clusters, test.ofBundles, test.ofClusters)
			}
		})
	}
}

// A Cluster that a wave has gone past is told while the wave goes on elsewhere: thousands that are all told at the end
// would be late.
func TestAWaveThatHasGonePast(t *testing.T) {
	for name, test := range map[string]struct {
		changes []change
		within  time.Duration
		told    int
	}{
		"all written and answered":  {[]change{{nil, 1, true, written}, {nil, 1, false, answered}}, 2 * time.Second, 1},
		"some are still written":    {[]change{{nil, 1, true, touched}, {nil, 1, false, answered}}, 20 * time.Second, 0},
		"the agent is busy":         {[]change{{nil, 1, true, written}, {nil, 1, true, answered}}, 20 * time.Second, 0},
		"the agent has not begun":   {[]change{{nil, 1, true, written}}, 2 * time.Second, 0},
		"the agent does not answer": {[]change{{nil, 1, true, written}}, 7 * time.Second, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, cluster := play(), clusterNamed("c")
			p.began(cluster)
			elsewhere := waved{20, 200, time.Minute, 0}.changes()
			p.until(test.within+time.Second, func(at time.Duration) []change {
				changes := elsewhere(at)
				if at == time.Second {
					for _, one := range test.changes {
						one.parents = []tally.Parent{cluster}
						changes = append(changes, one)
					}
				}
				return changes
			})
			if got := len(p.told[cluster]); got != test.told {
				t.Errorf("told %d times within %s, want %d", got, test.within, test.told)
			}
		})
	}
}

// While something is being written a wave is not over, unless that takes too long.
func TestAWaveWithWritesUnderWay(t *testing.T) {
	p := play()
	wave := waved{20, 200, time.Second, 0}
	wave.begin(p)
	p.until(2*time.Second, wave.changes())
	if got := p.tellings(tally.KindCluster); got > 0 {
		t.Errorf("%d clusters are told while deployments are written", got)
	}
	one := change{[]tally.Parent{bundleNamed("0"), clusterNamed("0")}, 1, true, touched}
	p.until(2*time.Second+grain, func(time.Duration) []change { return []change{one} }) // and the API server wakes up
	if got := p.tellings(tally.KindCluster); got > 0 {
		t.Errorf("%d clusters are told when the wave goes on", got)
	}
	p.ended()
	p.until(6*time.Second, nothing)
	if got := p.tellings(tally.KindCluster); got != 200 {
		t.Errorf("%d clusters are told when they are written", got)
	}
	p.began() // and never ends
	more := wave.changes()
	p.until(12*time.Second, func(at time.Duration) []change { return more(at - 6*time.Second) })
	if got := p.tellings(tally.KindCluster); got != 400 {
		t.Errorf("clusters are told %d times with a write that does not end", got)
	}
}

// A wave that stands still for a moment seems to be over; what was not written until it goes on waits again.
func TestAWaveThatPauses(t *testing.T) {
	const length, from, pause = 10 * time.Second, 5 * time.Second, time.Second
	p := play()
	p.slots = 1
	wave := waved{20, 200, length, 0}.changes()
	p.until(length+pause+13*time.Second, func(at time.Duration) []change {
		switch {
		case at < from:
			return wave(at)
		case at < from+pause:
			return nil
		}
		return wave(at - pause)
	})
	if got, most := p.tellings(tally.KindCluster), 200+int(pause/grain); got < 200 || got > most {
		t.Errorf("clusters are told %d times, want 200, and %d at most", got, most)
	}
	for parent, count := range p.counts {
		if p.says[parent] != count {
			t.Errorf("%s %s says %d, want %d", parent.Kind, parent, p.says[parent], count)
		}
	}
}

// While changes never end, everybody is told now and then.
func TestAWaveThatDoesNotEnd(t *testing.T) {
	p := play()
	bundle, cluster := bundleNamed("b"), clusterNamed("c")
	p.until(30*time.Minute, func(time.Duration) []change { return []change{{[]tally.Parent{bundle, cluster}, 1, false, touched}} })
	for parent, told := range p.told {
		last := time.Duration(0)
		for _, at := range append(told, 30*time.Minute) {
			if at-last > 10*time.Minute+time.Second {
				t.Errorf("%s %s is not told from %s to %s", parent.Kind, parent, last, at)
			}
			last = at
		}
		if len(told) > 20 {
			t.Errorf("%s %s is told %d times in half an hour: %v", parent.Kind, parent, len(told), told)
		}
	}
	if len(p.told) != 2 {
		t.Errorf("told: %v", p.told)
	}
}

// Whatever changes, and whenever controllers read and deployments are written, everybody is told after the last change
// within two seconds, of numbers that were read after it.
func TestEverythingIsToldInTheEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		p := play()
		parents := []tally.Parent{bundleNamed("a"), bundleNamed("b"), clusterNamed("c"), clusterNamed("d")}
		wanted, says := map[tally.Parent]int{}, map[tally.Parent]int{}
		length := time.Duration(random.Int64N(int64(20 * time.Second)))
		last, density := begin, 1+random.IntN(200)
		change := func(parent tally.Parent) {
			wanted[parent]++
			p.changed(affected{parent, random.IntN(2) == 0, random.IntN(2) == 0})
			last = p.at
		}
		// work is one pass of a controller: mark, read, and maybe another change before the write.
		work := func(parent tally.Parent) {
			mark := p.mark(parent)
			read := wanted[parent]
			if random.IntN(10) == 0 && p.at.Sub(begin) < length {
				change(parent)
			}
			switch {
			case read == says[parent]:
				p.rest(parent, mark)
			case p.tell(parent, mark, random.IntN(20) == 0):
				says[parent] = read
			}
		}
		var writing []*Writing
		write := func() {
			switch {
			case p.at.Sub(begin) >= length || len(writing) > 0 && random.IntN(20) == 0:
				for _, w := range writing {
					w.End()
					last = p.at
				}
				writing = nil
			case random.IntN(density) == 0:
				writing = append(writing, (&Feed{calm: p.calm}).Writing(parents[2].Ref, parents[3].Ref))
			case len(writing) > 0 && random.IntN(5) == 0:
				writing[random.IntN(len(writing))].Wrote(parents[2+random.IntN(2)].Ref)
			}
		}
		for p.at.Sub(begin) < length || len(writing) > 0 || p.at.Sub(last) < 2*time.Second {
			if p.at.Sub(begin) < length && random.IntN(density) == 0 {
				change(parents[random.IntN(len(parents))])
			}
			write()
			due, _ := p.ready()
			for _, parent := range due {
				work(parent)
			}
			if random.IntN(50) == 0 { // woken up by something else
				work(parents[random.IntN(len(parents))])
			}
			p.at = p.at.Add(grain)
		}
		for _, parent := range parents {
			if says[parent] != wanted[parent] {
				t.Fatalf("%s %s says %d of %d changes two seconds after the last", parent.Kind, parent, says[parent], wanted[parent])
			}
		}
		if len(p.expected) > 0 || p.writing != 0 {
			t.Fatalf("remembers writes that have ended: %v, %d", p.expected, p.writing)
		}
	}
}

func TestCalmForgets(t *testing.T) {
	p := play()
	for i := range 10_000 {
		p.until(p.at.Sub(begin)+grain, func(time.Duration) []change {
			return []change{{[]tally.Parent{bundleNamed(time.Duration(i).String())}, 1, false, touched}}
		})
	}
	if len(p.objects) > 7_000 || len(p.waiting) > 400 {
		t.Errorf("remembers %d objects, %d wait", len(p.objects), len(p.waiting))
	}
	p.until(p.at.Sub(begin)+time.Second, nothing)
}
