package rollout

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func TestLimit(t *testing.T) {
	number := func(n int) *intstr.IntOrString { v := intstr.FromInt32(int32(n)); return &v }
	text := func(s string) *intstr.IntOrString { v := intstr.FromString(s); return &v }
	for name, test := range map[string]struct {
		count   int
		value   *intstr.IntOrString
		want    int
		wantErr bool
	}{
		"missing":               {count: 7, want: 7},
		"number":                {count: 7, value: number(3), want: 3},
		"number is capped":      {count: 7, value: number(9), want: 7},
		"negative":              {count: 7, value: number(-1), want: 0},
		"zero":                  {count: 7, value: number(0), want: 0},
		"percent rounds down":   {count: 7, value: text("50%"), want: 3},
		"percent, one at least": {count: 7, value: text("1%"), want: 1},
		"zero percent is one":   {count: 7, value: text("0%"), want: 1},
		"percent is exact":      {count: 100, value: text("29%"), want: 29},
		"huge percent":          {count: 7, value: text("9223372036854775807%"), want: 700},
		"digits have no cap":    {count: 7, value: text("12"), want: 12},
		"text zero":             {count: 7, value: text("0"), wantErr: true},
		"other text":            {count: 7, value: text("many"), wantErr: true},
		"bad percent":           {count: 7, value: text("x%"), wantErr: true},
		"of nothing":            {count: 0, value: number(0), want: 1},
	} {
		got, err := limit("maxUnavailable", test.count, test.value, intstr.FromString("100%"))
		if (err != nil) != test.wantErr || got != test.want {
			t.Errorf("%s: got %d, %v", name, got, err)
		}
		if err != nil && fault.ClassOf(err) != fault.Stalled {
			t.Errorf("%s: class %s", name, fault.ClassOf(err))
		}
	}
}

func strategy(t testing.TB, text string) *fleet.RolloutStrategy {
	t.Helper()
	if text == "" {
		return nil
	}
	var s fleet.RolloutStrategy
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

var (
	absent  = Member{Unavailable: true}
	done    = Member{Exists: true, Released: true, Applied: true}
	old     = Member{Exists: true}
	oldDown = Member{Exists: true, Unavailable: true}
	rolling = Member{Exists: true, Released: true, Unavailable: true}
)

func with(member Member, change func(*Member)) Member {
	change(&member)
	return member
}

func in(member Member, partitions ...int) Member {
	member.Partitions = partitions
	return member
}

// The actions are written as one letter a member: c create and release, C create only, r release, s stage
// only, and . for nothing.
func letters(actions []Action) string {
	text := ""
	for _, action := range actions {
		switch action {
		case Action{Create: true, Stage: true, Release: true}:
			text += "c"
		case Action{Create: true, Stage: true}:
			text += "C"
		case Action{Stage: true, Release: true}:
			text += "r"
		case Action{Stage: true}:
			text += "s"
		case Action{}:
			text += "."
		default:
			text += "?"
		}
	}
	return text
}

func TestDecide(t *testing.T) {
	paused := func(m *Member) { m.Paused = true }
	offline := func(m *Member) { m.Offline = true }
	idle := func(m *Member) { m.Idle = true }
	frozen := func(m *Member) { m.Frozen = true }
	held := func(m *Member) { m.Held = true }
	const three = "{partitions: [{name: a}, {name: b, maxUnavailable: 1}, {name: c}], maxUnavailable: 50%}"
	for name, test := range map[string]struct {
		strategy string
		members  []Member
		want     string
		wantMore bool
	}{
		"everything at once":            {"", []Member{absent, old, oldDown, done, rolling}, "crrss", false},
		"one at a time":                 {"{maxUnavailable: 1}", []Member{old, old, old}, "rss", false},
		"one is on its way":             {"{maxUnavailable: 1}", []Member{rolling, old, old}, "sss", false},
		"what is down may change":       {"{maxUnavailable: 1}", []Member{rolling, oldDown, old}, "srs", false},
		"new ones may always":           {"{maxUnavailable: 1}", []Member{rolling, absent, absent, old}, "sccs", false},
		"none may be unavailable":       {"{maxUnavailable: 0}", []Member{old, oldDown}, "sr", false},
		"few new ones":                  {"{maxNew: 2}", []Member{absent, old, absent, absent}, "crc.", true},
		"paused":                        {"", []Member{with(absent, paused), with(old, paused), old}, "Csr", false},
		"paused ones hold nothing up":   {"{maxUnavailable: 1, partitions: [{name: a}]}", []Member{in(with(oldDown, paused), 0), old}, "sr", false},
		"offline within the budget":     {"{maxUnavailable: 1}", []Member{with(rolling, offline), old, old, old}, "srss", false},
		"offline beyond the budget":     {"{maxUnavailable: 1}", []Member{with(rolling, offline), with(rolling, offline), old, old}, "ssss", false},
		"off schedule":                  {"{maxUnavailable: 1}", []Member{with(rolling, idle), with(oldDown, idle), old}, "srr", false},
		"not planned":                   {"{maxUnavailable: 1}", []Member{with(oldDown, frozen), with(absent, frozen), old}, "..r", false},
		"first partition":               {three, []Member{in(old, 0), in(old, 0), in(old, 1), in(absent, 2)}, "rs..", false},
		"first partition is on its way": {three, []Member{in(rolling, 0), in(rolling, 0), in(old, 1), in(absent, 2)}, "ss..", false},
		"first partition is done":       {three, []Member{in(done, 0), in(done, 0), in(old, 1), in(old, 1), in(absent, 2)}, "ssrs.", false},
		"limit of the partition":        {"{partitions: [{name: a, maxUnavailable: 1}]}", []Member{in(old, 0), in(old, 0), in(old, 0)}, "rss", false},
		"one partition may lag":         {"{maxUnavailablePartitions: 1, partitions: [{name: a, maxUnavailable: 1}, {name: b}, {name: c}]}", []Member{in(old, 0), in(old, 0), in(old, 1), in(old, 2)}, "rsrr", false},
		"in no partition: last":         {"{partitions: [{name: a, maxUnavailable: 0}]}", []Member{old, in(old, 0), absent}, ".s.", false},
		"in no partition, its turn":     {"{partitions: [{name: a, maxUnavailable: 0}]}", []Member{old, in(done, 0), absent}, "rsc", false},
		"in two partitions":             {"{partitions: [{name: a}, {name: b}]}", []Member{in(old, 0, 1), in(old, 1)}, "rr", false},
		"automatic partitions":          {"{autoPartitionThreshold: 4, autoPartitionSize: 2, maxUnavailable: 1}", []Member{old, old, old, old}, "rs..", false},
		"below the threshold":           {"{autoPartitionThreshold: 5, autoPartitionSize: 2}", []Member{old, old, old, old}, "rrrr", false},
		"no size":                       {"{autoPartitionThreshold: 1, autoPartitionSize: 0}", []Member{old, old}, "rr", false},
		"held back":                     {"{maxUnavailable: 1}", []Member{with(old, held), with(absent, held), old}, "..r", false},
		"held back and down":            {"{maxUnavailable: 1}", []Member{with(oldDown, held), old}, ".s", false},
		"held back in the canary":       {"{partitions: [{name: a, maxUnavailable: 0}, {name: b}]}", []Member{in(with(old, held), 0), in(old, 1)}, "..", false},
		"held back within its limit":    {"{partitions: [{name: a, maxUnavailable: 1}, {name: b}]}", []Member{in(with(old, held), 0), in(done, 0), in(old, 1)}, ".sr", false},
		"nothing":                       {"", nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decide(Input{Strategy: strategy(t, test.strategy), Members: test.members})
			if err != nil {
				t.Fatal(err)
			}
			if letters(got.Actions) != test.want || got.More != test.wantMore {
				t.Errorf("got %s, more %v", letters(got.Actions), got.More)
			}
		})
	}
}

// A limit of 0 is obeyed, and named as long as it holds something up.
func TestStuck(t *testing.T) {
	for text, want := range map[string]string{
		"{maxUnavailable: 0}":                          "maxUnavailable",
		"{partitions: [{name: a, maxUnavailable: 0}]}": `maxUnavailable of partition "a"`,
		"{maxUnavailable: 1}":                          "",
	} {
		got, err := Decide(Input{Strategy: strategy(t, text), Members: []Member{in(old, 0)}})
		if err != nil || got.Stuck != want {
			t.Errorf("%s: stuck by %q, %v", text, got.Stuck, err)
		}
		if got, _ := Decide(Input{Strategy: strategy(t, text), Members: []Member{in(done, 0)}}); got.Stuck != "" {
			t.Errorf("%s: nothing to do, but stuck by %q", text, got.Stuck)
		}
	}
}

// A maxNew of 0 is obeyed too: nothing is left for a next pass that could do no more.
func TestNoNewOnes(t *testing.T) {
	for _, text := range []string{"{maxNew: 0}", "{maxNew: -1}"} {
		got, err := Decide(Input{Strategy: strategy(t, text), Members: []Member{old, absent, done}})
		if err != nil || letters(got.Actions) != "r.s" || got.More || got.Stuck != "maxNew" || got.Rollout.Phase != fleet.RolloutHalted {
			t.Errorf("%s: %s, more %v, stuck by %q, %s, %v", text, letters(got.Actions), got.More, got.Stuck, got.Rollout.Phase, err)
		}
	}
}

func TestPartitionNamesAndCounts(t *testing.T) {
	members := make([]Member, 5)
	for i := range members {
		members[i] = old
	}
	got, err := Decide(Input{Strategy: strategy(t, "{autoPartitionThreshold: 5, autoPartitionSize: 40%, maxUnavailable: 1}"), Members: members})
	if err != nil {
		t.Fatal(err)
	}
	want := []Partition{
		{Name: "Partition 0 - 2", Members: []int{0, 1}, MaxUnavailable: 1, Unavailable: 2},
		{Name: "Partition 2 - 4", Members: []int{2, 3}, MaxUnavailable: 1, Unavailable: 2},
		{Name: "Partition 4 - 5", Members: []int{4}, MaxUnavailable: 1, Unavailable: 1},
	}
	if diff := cmp.Diff(want, got.Partitions); diff != "" {
		t.Error(diff)
	}
	if got.MaxUnavailable != 1 || got.MaxUnavailablePartitions != 0 || got.UnavailablePartitions != 2 {
		t.Errorf("%+v", got)
	}
}

func TestDefaultsOfLargeFleets(t *testing.T) {
	for count, want := range map[int]int{1: 1, 199: 1, 200: 4, 1000: 4} {
		got, err := Decide(Input{Members: make([]Member, count)})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Partitions) != want || got.Created != min(count, DefaultMaxNew) || got.More != (count > DefaultMaxNew) {
			t.Errorf("%d clusters: %d partitions, %d created, more %v", count, len(got.Partitions), got.Created, got.More)
		}
	}
}

// Whatever clusters do, no pass makes more of them unavailable than the limits of the bundle and of each
// partition allow, no more are created than maxNew, and when agents keep answering all change in the end.
func TestLimitsHold(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		count := 1 + random.IntN(20)
		perPass, partLimit, maxNew := 1+random.IntN(4), 1+random.IntN(3), 1+random.IntN(5)
		total, own := intstr.FromInt32(int32(perPass)), intstr.FromInt32(int32(partLimit))
		s := &fleet.RolloutStrategy{MaxUnavailable: &total, MaxNew: &maxNew, Partitions: []fleet.Partition{{MaxUnavailable: &own}, {MaxUnavailable: &own}}}
		members := make([]Member, count)
		for i := range members {
			members[i] = []Member{absent, done, old, oldDown, rolling}[random.IntN(5)]
			members[i].Partitions = [][]int{{0}, {1}, {0, 1}, nil}[random.IntN(4)]
		}
		for pass := 0; ; pass++ {
			if pass > 500 {
				t.Fatalf("seed %d: does not end: %+v", seed, members)
			}
			decision, err := Decide(Input{Strategy: s, Members: members})
			if err != nil {
				t.Fatal(err)
			}
			checkPass(t, members, decision, min(perPass, count), maxNew)
			if carryOut(members, decision) == 0 && allApplied(members) {
				break
			}
			answer(random, members)
		}
	}
}

// checkPass checks that clusters which were available are released only within the limits.
func checkPass(t *testing.T, members []Member, decision Decision, limit, maxNew int) {
	t.Helper()
	lost, down, created := 0, 0, 0
	for i, action := range decision.Actions {
		switch {
		case action.Create:
			created++
		case members[i].Exists && members[i].Unavailable:
			down++
		case action.Release:
			lost++
		}
	}
	if lost > 0 && lost+down > limit {
		t.Fatalf("%d released while %d are down, limit %d", lost, down, limit)
	}
	if created > maxNew {
		t.Fatalf("%d created, at most %d", created, maxNew)
	}
	for p, part := range decision.Partitions {
		checkPartition(t, members, decision, p, part)
	}
}

// checkPartition checks the limit of one partition. A cluster in several is released by the first of them,
// and counts there.
func checkPartition(t *testing.T, members []Member, decision Decision, p int, part Partition) {
	t.Helper()
	lost, down := 0, 0
	for _, i := range part.Members {
		first := len(members[i].Partitions) == 0 || members[i].Partitions[0] == p
		switch {
		case members[i].Exists && members[i].Unavailable:
			down++
		case first && decision.Actions[i].Release && !decision.Actions[i].Create:
			lost++
		}
	}
	if lost > 0 && lost+down > part.MaxUnavailable {
		t.Fatalf("partition %q: %d released while %d are down, limit %d", part.Name, lost, down, part.MaxUnavailable)
	}
}

func carryOut(members []Member, decision Decision) int {
	changed := 0
	for i, action := range decision.Actions {
		if action.Release {
			members[i].Exists, members[i].Released, members[i].Unavailable, members[i].Applied = true, true, true, false
			changed++
		}
	}
	return changed
}

func answer(random *rand.Rand, members []Member) {
	for i := range members {
		if members[i].Exists && members[i].Unavailable && random.IntN(3) > 0 {
			members[i].Unavailable, members[i].Applied = false, members[i].Released
		}
	}
}

func allApplied(members []Member) bool {
	for _, member := range members {
		if !member.Applied {
			return false
		}
	}
	return true
}
