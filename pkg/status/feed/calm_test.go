package feed

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/status"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func bundleNamed(name string) status.Parent {
	return status.Parent{Kind: status.KindBundle, Ref: status.Ref{Namespace: "ws", Name: name}}
}

func clusterNamed(name string) status.Parent {
	return status.Parent{Kind: status.KindCluster, Ref: status.Ref{Namespace: "ws", Name: name}}
}

// played is a calm with controllers that write what they are woken up for.
type played struct {
	*calm
	at time.Time
	// told is when each parent was told.
	told map[status.Parent][]time.Duration
}

func play() *played {
	p := &played{at: begin, told: map[status.Parent][]time.Duration{}}
	p.calm = newCalm(func() time.Time { return p.at })
	return p
}

// until lets time pass in grains; changes says what changes in each of them, one after the other.
func (p *played) until(end time.Duration, changes func(at time.Duration) []status.Parent) {
	for ; p.at.Sub(begin) < end; p.at = p.at.Add(grain) {
		for _, changed := range changes(p.at.Sub(begin)) {
			p.changed(changed)
		}
		due, _ := p.ready()
		for _, parent := range due {
			if mark := p.mark(parent); p.tell(parent, mark) {
				p.told[parent] = append(p.told[parent], p.at.Sub(begin))
			}
		}
	}
}

func nothing(time.Duration) []status.Parent { return nil }

func TestASingleChange(t *testing.T) {
	p := play()
	bundle, cluster := bundleNamed("b"), clusterNamed("c")
	p.until(5*time.Second, func(at time.Duration) []status.Parent {
		if at == 0 {
			return []status.Parent{bundle, cluster}
		}
		return nil
	})
	if got := p.told[bundle]; !slices.Equal(got, []time.Duration{0}) {
		t.Errorf("the bundle is told at %v, want at once", got)
	}
	if got := p.told[cluster]; len(got) != 1 || got[0] > time.Second {
		t.Errorf("the cluster is told at %v, want within a second", got)
	}
}

// A wave of bundles over clusters, such as a fan-out: each bundle is told a few times, each cluster once.
func TestAWave(t *testing.T) {
	const bundles, clusters, length = 20, 200, 6 * time.Second
	random := rand.New(rand.NewPCG(1, 1))
	p := play()
	var pairs [][2]int
	for b := range bundles {
		for c := range clusters {
			pairs = append(pairs, [2]int{b, c})
		}
	}
	random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	each := len(pairs) / int(length/grain)
	p.until(length+5*time.Second, func(at time.Duration) []status.Parent {
		var changed []status.Parent
		for range min(each+1, len(pairs)) {
			changed = append(changed, bundleNamed(string(rune('a'+pairs[0][0]))), clusterNamed(time.Duration(pairs[0][1]).String()))
			pairs = pairs[1:]
		}
		return changed
	})
	all := 0
	for parent, told := range p.told {
		all += len(told)
		if last := told[len(told)-1]; last < length-time.Second || last > length+2*time.Second {
			t.Errorf("%s is told at last at %s", parent, last)
		}
		if most := map[status.ParentKind]int{status.KindBundle: 5, status.KindCluster: 1}[parent.Kind]; len(told) > most {
			t.Errorf("%s %s is told %d times: %v", parent.Kind, parent, len(told), told)
		}
	}
	if len(p.told) != bundles+clusters || all > clusters+5*bundles {
		t.Errorf("%d parents are told %d times", len(p.told), all)
	}
}

// While changes never end, everybody is told now and then.
func TestAWaveThatDoesNotEnd(t *testing.T) {
	p := play()
	bundle, cluster := bundleNamed("b"), clusterNamed("c")
	p.until(5*time.Minute, func(time.Duration) []status.Parent { return []status.Parent{bundle, cluster} })
	if n := len(p.told[bundle]); n < 30 || n > 50 {
		t.Errorf("the bundle is told %d times in five minutes", n)
	}
	if n := len(p.told[cluster]); n < 4 || n > 10 {
		t.Errorf("the cluster is told %d times in five minutes", n)
	}
}

// Whatever changes, and whenever controllers read, everybody is told after the last change within two
// seconds, of numbers that were read after it.
func TestEverythingIsToldInTheEnd(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		p := play()
		parents := []status.Parent{bundleNamed("a"), bundleNamed("b"), clusterNamed("c"), clusterNamed("d")}
		wanted, says := map[status.Parent]int{}, map[status.Parent]int{}
		var last time.Time
		length := time.Duration(random.Int64N(int64(20 * time.Second)))
		density := 1 + random.IntN(200)
		// work is one pass of a controller: mark, read, and maybe another change before the write.
		change := func(parent status.Parent) {
			wanted[parent]++
			p.changed(parent)
			last = p.at
		}
		work := func(parent status.Parent) {
			mark := p.mark(parent)
			read := wanted[parent]
			if random.IntN(10) == 0 && p.at.Sub(begin) < length {
				change(parent)
			}
			switch {
			case read == says[parent]:
				p.rest(parent, mark)
			case p.tell(parent, mark):
				says[parent] = read
			}
		}
		for p.at.Sub(begin) < length || p.at.Sub(last) < 2*time.Second {
			if p.at.Sub(begin) < length && random.IntN(density) == 0 {
				change(parents[random.IntN(len(parents))])
			}
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
	}
}

func TestCalmForgets(t *testing.T) {
	p := play()
	for i := range 20_000 {
		p.until(p.at.Sub(begin)+grain, func(time.Duration) []status.Parent { return []status.Parent{bundleNamed(time.Duration(i).String())} })
	}
	if len(p.objects) > 10_000 || len(p.pending) > 0 {
		t.Errorf("remembers %d objects, %d wait", len(p.objects), len(p.pending))
	}
	p.until(p.at.Sub(begin)+time.Second, nothing)
}
