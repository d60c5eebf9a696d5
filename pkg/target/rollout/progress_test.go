package rollout

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// ago sets both times of a member.
func ago(member Member, span time.Duration) Member {
	member.SentAt, member.ReadySince = noon.Add(-span), noon.Add(-span)
	return member
}

var broken = Member{Exists: true, Released: true, Unavailable: true, Failed: true}

// words tells a decision as "actions phase toApply/progressing/succeeded/failed/timedOut".
func words(d Decision) string {
	r := d.Rollout
	text := fmt.Sprintf("%s %s %d/%d/%d/%d/%d", letters(d.Actions), r.Phase, r.ToApply, r.Progressing, r.Succeeded, r.Failed, r.TimedOut)
	if r.Breached {
		text += " breached"
	}
	if !d.NextCheck.IsZero() {
		text += " next " + d.NextCheck.Sub(noon).String()
	}
	return text
}

func TestProgress(t *testing.T) {
	const (
		canary = "partitions: [{name: a}, {name: b}, {name: canary}], mandatoryPartitions: [canary]"
		timed  = "minSuccessTime: 10m, progressDeadline: 30m"
	)
	paused := func(m *Member) { m.Paused = true }
	offline := func(m *Member) { m.Offline = true }
	frozen := func(m *Member) { m.Frozen = true }
	minute := time.Minute
	for name, test := range map[string]struct {
		strategy string
		members  []Member
		accepted int
		paused   bool
		want     string
	}{
		"nothing to do":                    {"{}", []Member{done, done}, 0, false, "ss Complete 0/0/2/0/0"},
		"under way":                        {"{}", []Member{done, rolling, old}, 0, false, "ssr Progressing 1/1/1/0/0"},
		"failures are waited for":          {"{}", []Member{done, broken}, 0, false, "ss Progressing 0/0/1/1/0"},
		"failures are tolerated":           {"{maxFailures: 1}", []Member{done, broken}, 0, false, "ss Complete 0/0/1/1/0"},
		"one failure too many":             {"{maxFailures: 1}", []Member{broken, broken, old, absent}, 0, false, "sss. Halted 2/0/0/2/0 breached"},
		"failures in percent":              {"{maxFailures: 25%}", []Member{broken, old, old, old}, 0, false, "srrr Progressing 3/0/0/1/0"},
		"few failures in percent":          {"{maxFailures: 25%}", []Member{broken, old, old}, 0, false, "sss Halted 2/0/0/1/0 breached"},
		"nothing may fail":                 {"{maxFailures: 0}", []Member{broken, oldDown}, 0, false, "ss Halted 1/0/0/1/0 breached"},
		"halted at the end":                {"{maxFailures: 0}", []Member{broken, done}, 0, false, "ss Halted 0/0/1/1/0 breached"},
		"failures are accepted":            {"{maxFailures: 0}", []Member{broken, old}, 1, false, "sr Progressing 1/0/0/1/0"},
		"more failures than accepted":      {"{maxFailures: 0}", []Member{broken, broken, old}, 1, false, "sss Halted 1/0/0/2/0 breached"},
		"paused":                           {"{}", []Member{with(done, paused), with(old, paused)}, 0, true, "ss Halted 1/0/1/0/0"},
		"paused with nothing to do":        {"{}", []Member{with(done, paused)}, 0, true, "s Complete 0/0/1/0/0"},
		"paused, and one failed":           {"{maxFailures: 0}", []Member{broken, old}, 0, true, "ss Halted 1/0/0/1/0 breached"},
		"paused, its failure is accepted":  {"{maxFailures: 0}", []Member{broken, old}, 1, true, "ss Halted 1/0/0/1/0"},
		"paused, none of it is late":       {"{maxFailures: 0, " + timed + "}", []Member{ago(rolling, 40*minute), absent}, 0, true, "sC Halted 1/1/0/0/0"},
		"paused, but for what is offline":  {"{maxFailures: 0}", []Member{with(broken, offline), old, old, old}, 0, true, "ssss Halted 3/0/0/1/0"},
		"paused, one is on its way":        {"{}", []Member{done, rolling}, 0, true, "ss Halted 0/1/1/0/0"},
		"paused, one has failed":           {"{}", []Member{done, broken}, 0, true, "ss Halted 0/0/1/1/0"},
		"paused, what failed is tolerated": {"{maxFailures: 1}", []Member{done, broken}, 0, true, "ss Complete 0/0/1/1/0"},
		"paused, the rest is offline":      {"{}", []Member{done, done, done, with(rolling, offline)}, 0, true, "ssss Complete 0/1/3/0/0"},
		"one cluster is paused":            {"{}", []Member{done, with(old, paused)}, 0, false, "ss Complete 1/0/1/0/0"},
		"one cluster cannot be planned":    {"{}", []Member{done, with(old, frozen)}, 0, false, "s. Progressing 1/0/1/0/0"},
		"one cluster is offline":           {"{}", []Member{done, with(rolling, offline)}, 0, false, "ss Complete 0/1/1/0/0"},
		"a limit of 0":                     {"{maxUnavailable: 0}", []Member{done, old}, 0, false, "ss Halted 1/0/1/0/0"},
		"a concurrency of 0":               {"{maxConcurrency: 0}", []Member{done, old}, 0, false, "ss Halted 1/0/1/0/0"},
		"ready for long enough":            {"{minSuccessTime: 10m}", []Member{ago(done, 10*minute)}, 0, false, "s Complete 0/0/1/0/0"},
		"ready, not for long enough":       {"{minSuccessTime: 10m}", []Member{ago(done, 4*minute)}, 0, false, "s Progressing 0/1/0/0/0 next 6m0s"},
		"the next look is rounded up":      {"{minSuccessTime: 10m}", []Member{ago(done, 4*minute+time.Second)}, 0, false, "s Progressing 0/1/0/0/0 next 6m0s"},
		"the earliest look counts":         {"{" + timed + "}", []Member{ago(done, 4*minute), ago(rolling, 25*minute)}, 0, false, "ss Progressing 0/2/0/0/0 next 5m0s"},
		"too late":                         {"{" + timed + "}", []Member{ago(rolling, 30*minute), old}, 0, false, "sr Progressing 1/0/0/0/1"},
		"too late is a failure":            {"{maxFailures: 0, " + timed + "}", []Member{ago(rolling, 30*minute), old}, 0, false, "ss Halted 1/0/0/0/1 breached"},
		"not known when it was told":       {"{progressDeadline: 1m}", []Member{rolling}, 0, false, "s Progressing 0/1/0/0/0"},
		"offline is not late":              {"{maxFailures: 0, " + timed + "}", []Member{with(ago(rolling, 40*minute), offline), old}, 0, false, "sr Progressing 1/1/0/0/0"},
		"the next partition waits":         {"{minSuccessTime: 10m, partitions: [{name: a}, {name: b}]}", []Member{in(ago(done, 4*minute), 0), in(old, 1)}, 0, false, "s. Progressing 1/1/0/0/0 next 6m0s"},
		"the next partition's turn":        {"{minSuccessTime: 10m, partitions: [{name: a}, {name: b}]}", []Member{in(ago(done, 10*minute), 0), in(old, 1)}, 0, false, "sr Progressing 1/0/1/0/0"},
		"so many at a time":                {"{maxConcurrency: 2}", []Member{old, absent, oldDown, old}, 0, false, "rcss Progressing 4/0/0/0/0"},
		"so many at a time, on their way":  {"{maxConcurrency: 2, maxUnavailable: 100%}", []Member{rolling, old, old}, 0, false, "srs Progressing 2/1/0/0/0"},
		"ready ones count for a time":      {"{maxConcurrency: 1, minSuccessTime: 10m}", []Member{ago(done, minute), old}, 0, false, "ss Progressing 1/1/0/0/0 next 9m0s"},
		"tolerated failures give way":      {"{maxConcurrency: 1, maxFailures: 1}", []Member{broken, old}, 0, false, "sr Progressing 1/0/0/1/0"},
		"other failures do not":            {"{maxConcurrency: 1}", []Member{broken, old}, 0, false, "ss Progressing 1/0/0/1/0"},
		"concurrency in percent":           {"{maxConcurrency: 50%}", []Member{old, old, old, old, old}, 0, false, "rrsss Progressing 5/0/0/0/0"},
		"concurrency holds beside maxNew":  {"{maxConcurrency: 1, maxNew: 2}", []Member{absent, absent, absent}, 0, false, "c.. Progressing 3/0/0/0/0"},
		"all":                              {"{type: All, maxUnavailable: 1, maxConcurrency: 1, partitions: [{name: a}, {name: b}]}", []Member{in(old, 0), in(old, 1), in(rolling, 1), old}, 0, false, "rrsr Progressing 3/1/0/0/0"},
		"all, halted":                      {"{type: All, maxFailures: 0}", []Member{broken, old}, 0, false, "ss Halted 1/0/0/1/0 breached"},
		"progressive: a quarter":           {"{type: Progressive}", []Member{old, old, old, old}, 0, false, "rsss Progressing 4/0/0/0/0"},
		"progressive: nothing may fail":    {"{type: Progressive}", []Member{broken, old, old, old}, 0, false, "ssss Halted 3/0/0/1/0 breached"},
		"progressive: in their order":      {"{type: Progressive, partitions: [{name: a}, {name: b}]}", []Member{in(old, 1), old, in(old, 0), in(old, 0, 1)}, 0, false, "ssrs Progressing 4/0/0/0/0"},
		"progressive: canary first":        {"{type: Progressive, " + canary + "}", []Member{in(old, 0), in(old, 1), in(old, 2), old, old}, 0, false, "..r.. Progressing 5/0/0/0/0"},
		"progressive: canary is done":      {"{type: Progressive, maxConcurrency: 3, " + canary + "}", []Member{in(old, 1), in(old, 0), in(done, 2), old, old}, 0, false, "rrsrs Progressing 4/0/1/0/0"},
		"progressive: canary fails":        {"{type: Progressive, maxFailures: 3, " + canary + "}", []Member{in(old, 0), in(broken, 2), old}, 0, false, ".s. Halted 2/0/0/1/0 breached"},
		"progressive: its failure is fine": {"{type: Progressive, maxFailures: 3, " + canary + "}", []Member{in(old, 0), in(broken, 2), old}, 1, false, "rss Progressing 2/0/0/1/0"},
		"partitioned: canary first":        {"{" + canary + "}", []Member{in(old, 0), in(old, 2), old}, 0, false, ".r. Progressing 3/0/0/0/0"},
		"partitioned: canary fails":        {"{maxUnavailablePartitions: 3, " + canary + "}", []Member{in(old, 0), in(broken, 2), old}, 0, false, ".s. Halted 2/0/0/1/0 breached"},
		"per group: one after another":     {"{type: ProgressivePerGroup, partitions: [{name: a}, {name: b}]}", []Member{in(old, 0), in(rolling, 0), in(old, 1), old}, 0, false, "rs.. Progressing 3/1/0/0/0"},
		"per group: the next":              {"{type: ProgressivePerGroup, partitions: [{name: a}, {name: b}]}", []Member{in(done, 0), in(done, 0), in(old, 1), old}, 0, false, "ssr. Progressing 2/0/2/0/0"},
		"per group: its own failures":      {"{type: ProgressivePerGroup, maxFailures: 50%, partitions: [{name: a}, {name: b}]}", []Member{in(done, 0), in(broken, 0), in(old, 1), old}, 0, false, "ssr. Progressing 2/0/1/1/0"},
		"per group: too many of one":       {"{type: ProgressivePerGroup, maxFailures: 50%, partitions: [{name: a}, {name: b}]}", []Member{in(broken, 0), in(old, 1), in(old, 1), old}, 0, false, "s... Halted 3/0/0/1/0 breached"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decide(Input{Strategy: strategy(t, test.strategy), Members: test.members, AcceptedFailures: test.accepted, Paused: test.paused, Now: noon})
			if err != nil {
				t.Fatal(err)
			}
			if words(got) != test.want {
				t.Errorf("got  %s\nwant %s", words(got), test.want)
			}
		})
	}
}

func TestStrategiesThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{
		"type":                      "{type: Canary}",
		"concurrency":               "{maxConcurrency: many}",
		"failures":                  "{maxFailures: x%}",
		"failures of nobody":        "{maxFailures: -3%}",
		"failures in words":         "{maxFailures: some}",
		"failures of a group":       "{type: ProgressivePerGroup, maxFailures: some}",
		"mandatory partition":       "{mandatoryPartitions: [a]}",
		"the rest is not mandatory": "{partitions: [{name: a}], mandatoryPartitions: [Rest]}",
		"mandatory twice":           "{partitions: [{name: a}], mandatoryPartitions: [a, a]}",
	} {
		_, err := Decide(Input{Strategy: strategy(t, text), Members: []Member{old}})
		if fault.ClassOf(err) != fault.Stalled || fault.ReasonOf(err) != ReasonInvalidRollout {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// fleetOfFates is a fleet whose members take to each version as their fate says.
type fleetOfFates struct {
	random  *rand.Rand
	now     time.Time
	members []Member
	// fails are members that never apply what they are told.
	fails []bool
}

func randomFleet(seed uint64) *fleetOfFates {
	f := &fleetOfFates{random: rand.New(rand.NewPCG(seed, 23)), now: noon}
	for range 1 + f.random.IntN(20) {
		member := []Member{absent, old, oldDown}[f.random.IntN(3)]
		member.Partitions = [][]int{{0}, {1}, {0, 1}, nil}[f.random.IntN(4)]
		f.members = append(f.members, member)
		f.fails = append(f.fails, f.random.IntN(8) == 0)
	}
	return f
}

func (f *fleetOfFates) strategy() *fleet.RolloutStrategy {
	kind := []fleet.RolloutType{fleet.RolloutPartitioned, fleet.RolloutProgressive, fleet.RolloutProgressivePerGroup}[f.random.IntN(3)]
	concurrency, failures := intstr.FromInt32(int32(1+f.random.IntN(4))), intstr.FromInt32(int32(f.random.IntN(3)))
	s := &fleet.RolloutStrategy{
		Type: &kind, MaxConcurrency: &concurrency, MaxFailures: &failures,
		MinSuccessTime: &fleet.Duration{Duration: time.Minute}, ProgressDeadline: &fleet.Duration{Duration: 10 * time.Minute},
		Partitions: []fleet.Partition{{ClusterTarget: fleet.ClusterTarget{Name: "a"}}, {ClusterTarget: fleet.ClusterTarget{Name: "b"}}},
	}
	if f.random.IntN(2) == 0 {
		s.MandatoryPartitions = []string{"b"}
	}
	return s
}

// act carries a decision out, lets some agents answer, and lets time pass.
func (f *fleetOfFates) act(decision Decision) (released int) {
	for i, action := range decision.Actions {
		if action.Release {
			released++
			m := &f.members[i]
			m.Exists, m.Released, m.Unavailable, m.Applied, m.SentAt = true, true, true, false, f.now
		}
	}
	for i := range f.members {
		m := &f.members[i]
		if !m.Released || m.Applied || f.random.IntN(3) == 0 {
			continue
		}
		if m.Failed = f.fails[i]; !m.Failed {
			m.Unavailable, m.Applied, m.ReadySince = false, true, f.now
		}
	}
	f.now = f.now.Add(time.Duration(f.random.IntN(40)) * time.Second)
	return released
}

// Whatever the fates of clusters are: no more than maxConcurrency are on their way, nothing is told once more
// than maxFailures failed, no other partition is touched before a mandatory one has succeeded, and the
// rollout ends: complete, or halted with a reason.
func TestProgressiveLimitsHold(t *testing.T) {
	phases := map[fleet.RolloutPhase]int{}
	for seed := range uint64(400) {
		f := randomFleet(seed)
		s := f.strategy()
		for pass := 0; ; pass++ {
			if pass > 1000 {
				t.Fatalf("seed %d: does not end", seed)
			}
			decision, err := Decide(Input{Strategy: s, Members: f.members, Now: f.now})
			if err != nil {
				t.Fatal(err)
			}
			f.check(t, seed, s, decision)
			if released := f.act(decision); released == 0 && decision.Rollout.Phase != fleet.RolloutProgressing {
				phases[decision.Rollout.Phase]++
				break
			}
		}
	}
	if phases[fleet.RolloutComplete] < 50 || phases[fleet.RolloutHalted] < 50 {
		t.Errorf("the fleets prove little: %v", phases)
	}
}

func (f *fleetOfFates) check(t *testing.T, seed uint64, s *fleet.RolloutStrategy, decision Decision) {
	t.Helper()
	released, flying, failing, mandatoryLeft, others := 0, 0, 0, false, false
	for i, m := range f.members {
		soaked := m.Applied && !f.now.Before(m.ReadySince.Add(time.Minute))
		late := m.Released && !m.Applied && !f.now.Before(m.SentAt.Add(10*time.Minute))
		mandatory := s.MandatoryPartitions != nil && len(m.Partitions) > 0 && m.Partitions[len(m.Partitions)-1] == 1
		mandatoryLeft = mandatoryLeft || mandatory && !soaked
		if decision.Actions[i].Release {
			released++
			others = others || !mandatory
		}
		if m.Released && (m.Failed || late) {
			failing++
		} else if m.Released && !soaked {
			flying++
		}
	}
	switch {
	case released > 0 && released+flying > s.MaxConcurrency.IntValue():
		t.Fatalf("seed %d: %d told while %d are on their way, limit %s", seed, released, flying, s.MaxConcurrency)
	case released > 0 && *s.Type != fleet.RolloutProgressivePerGroup && failing > s.MaxFailures.IntValue():
		t.Fatalf("seed %d: told although %d failed, limit %s", seed, failing, s.MaxFailures)
	case others && mandatoryLeft:
		t.Fatalf("seed %d: others are told before the mandatory partition has succeeded", seed)
	}
	counts := decision.Rollout
	if sum := counts.ToApply + counts.Progressing + counts.Succeeded + counts.Failed + counts.TimedOut; sum != len(f.members) {
		t.Fatalf("seed %d: %+v do not add up to %d", seed, counts, len(f.members))
	}
	if !decision.NextCheck.IsZero() && !decision.NextCheck.After(f.now) {
		t.Fatalf("seed %d: the next look is in the past", seed)
	}
}

// Without events a decision changes at its NextCheck, and not before.
func TestNothingChangesBeforeTheNextCheck(t *testing.T) {
	looks := 0
	for seed := range uint64(200) {
		f := randomFleet(seed)
		s := f.strategy()
		at := func(now time.Time) Decision {
			decision, err := Decide(Input{Strategy: s, Members: f.members, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			return decision
		}
		for range 12 {
			decision := at(f.now)
			if next := decision.NextCheck; !next.IsZero() {
				looks++
				// With these times a look is exact to the second.
				before, after := at(next.Add(-time.Second)), at(next)
				if f.now.Before(next.Add(-time.Second)) && words(before) != words(decision) {
					t.Fatalf("seed %d: changes before the next look\n%s\n%s", seed, words(decision), words(before))
				}
				if after.Rollout == decision.Rollout {
					t.Fatalf("seed %d: nothing changes at the next look: %s", seed, words(decision))
				}
			}
			f.act(decision)
		}
	}
	if looks < 200 {
		t.Errorf("only %d looks", looks)
	}
}
