package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// world is a table and members that decide on it in any order, stop, and go on.
type world struct {
	table   []string
	version int
	members []*player
}

// player is a member: what it has read of the table and at which version, and what it works on.
type player struct {
	name       string
	lives      bool
	since      int // renewed: 0; else for how many rounds not
	held, idle map[int]bool
	read       []string
	version    int
}

// dead is what everybody may conclude: not renewed for longer than work goes on without renewal.
func (w *world) dead(name string) bool {
	for _, p := range w.members {
		if p.name == name {
			return p.since >= 3
		}
	}
	return true
}

func (w *world) live(self string) []string {
	live := []string{self}
	for _, p := range w.members {
		if p.name != self && p.since < 3 {
			live = append(live, p.name)
		}
	}
	return live
}

// step lets a member do one thing; it decides on what it read, which may be old by then.
func (w *world) step(p *player, random *rand.Rand) {
	if !p.lives {
		return
	}
	if p.since >= 2 { // its deadline, which is before others take over
		clear(p.held)
		clear(p.idle)
	}
	p.since = 0
	if p.read == nil || random.IntN(2) == 0 {
		p.read, p.version = slices.Clone(w.table), w.version
		return
	}
	d := decide(view{self: p.name, live: w.live(p.name), table: p.read, held: p.held, idle: p.idle, dead: w.dead})
	for _, shard := range d.lost {
		delete(p.held, shard)
		delete(p.idle, shard)
	}
	for _, shard := range d.drain {
		p.idle[shard] = random.IntN(2) == 0 || p.idle[shard]
	}
	if len(d.release)+len(d.claim) > 0 {
		for _, shard := range d.release {
			delete(p.held, shard)
			delete(p.idle, shard)
		}
		if p.version == w.version {
			w.table = d.apply(p.read, p.name)
			w.version++
			for _, shard := range d.claim {
				p.held[shard] = true
			}
		}
	}
	p.read = nil
}

// At no time do two members work on one shard, whatever stops and goes on in whatever order; and once nothing
// happens any more, every shard is worked on, by shares that are even.
func TestOneHolderAtAnyTime(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := &world{table: make([]string, 16)}
		for i := range 4 {
			w.members = append(w.members, &player{name: fmt.Sprint("m", i), lives: true, held: map[int]bool{}, idle: map[int]bool{}})
		}
		for round := range 800 {
			p := w.members[random.IntN(len(w.members))]
			quiet := round > 250
			switch {
			case !quiet && random.IntN(10) == 0:
				p.lives = !p.lives // stopped (SIGSTOP), or going on
			case quiet:
				p.lives = true
			}
			w.step(p, random)
			if random.IntN(3) == 0 {
				for _, other := range w.members {
					if !other.lives {
						other.since++
					}
				}
			}
			w.check(t, seed, round)
		}
		for shard, holder := range w.table {
			if want := assign([]string{"m0", "m1", "m2", "m3"}, 16)[shard]; holder != want {
				t.Fatalf("seed %d: shard %d is %q's in the end, want %s", seed, shard, holder, want)
			}
		}
	}
}

func (w *world) check(t *testing.T, seed uint64, round int) {
	t.Helper()
	for shard := range w.table {
		var working []string
		for _, p := range w.members {
			if p.held[shard] && p.since < 2 { // later its validity is over, and the fence holds
				working = append(working, p.name)
			}
		}
		if len(working) > 1 {
			t.Fatalf("seed %d, round %d: %v work on shard %d", seed, round, working, shard)
		}
	}
}

func TestDecide(t *testing.T) {
	mine := assign([]string{"me", "you"}, 4)
	theirs := slices.Index(mine, "you")
	ours := slices.Index(mine, "me")
	table := func(shard int, holder string) []string {
		all := make([]string, 4)
		for i := range all {
			all[i] = mine[i]
		}
		all[shard] = holder
		return all
	}
	held := map[int]bool{}
	for shard, owner := range mine {
		held[shard] = owner == "me"
	}
	with := func(shard int) map[int]bool {
		all := map[int]bool{}
		for s, h := range held {
			all[s] = h
		}
		all[shard] = true
		return all
	}
	cases := map[string]struct {
		view view
		want string
	}{
		"all is as it should be":                  {view{table: table(ours, "me"), held: held}, "drain [] release [] claim [] lost []"},
		"a free shard of ours":                    {view{table: table(ours, ""), held: map[int]bool{}}, "claims it"},
		"a free shard of theirs is left":          {view{table: table(theirs, ""), held: held}, "drain [] release [] claim [] lost []"},
		"one that a dead member has":              {view{table: table(ours, "dead"), held: map[int]bool{}}, "claims it"},
		"one that a living member has not let go": {view{table: table(ours, "you"), held: map[int]bool{}}, "leaves it"},
		"one that is to go":                       {view{table: table(theirs, "me"), held: with(theirs)}, fmt.Sprintf("drain [%d] release [] claim [] lost []", theirs)},
		"one that is to go and has no work":       {view{table: table(theirs, "me"), held: with(theirs), idle: map[int]bool{theirs: true}}, fmt.Sprintf("drain [] release [%d] claim [] lost []", theirs)},
		"one that somebody took":                  {view{table: table(ours, "you"), held: with(ours)}, fmt.Sprintf("drain [] release [] claim [] lost [%d]", ours)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.view.self, c.view.live = "me", []string{"me", "you"}
			c.view.dead = func(holder string) bool { return holder == "dead" }
			d := decide(c.view)
			got := fmt.Sprintf("drain %v release %v claim %v lost %v", d.drain, d.release, d.claim, d.lost)
			switch c.want {
			case "claims it":
				if !slices.Contains(d.claim, ours) {
					t.Error(got)
				}
			case "leaves it":
				if slices.Contains(d.claim, ours) {
					t.Error(got)
				}
			default:
				if got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			}
		})
	}
}
