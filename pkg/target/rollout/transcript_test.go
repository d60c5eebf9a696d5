package rollout

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// transcripts are rollouts from start to end, a line a pass; in each pass every agent answers. A partition
// opens when no more of the one before is unavailable than that one's limit allows.
var transcripts = map[string]struct {
	strategy string
	members  []Member
	want     []string
}{
	"partitions one after another": {
		strategy: "{maxUnavailable: 2, partitions: [{name: canary, maxUnavailable: 1}, {name: main}]}",
		members:  []Member{in(old, 0), in(old, 0), in(old, 1), in(old, 1), in(old, 1), old},
		want:     []string{"rs....", "srrss.", "sssrrs", "sssssr", "ssssss"},
	},
	"new clusters join a rollout": {
		strategy: "{maxUnavailable: 1, maxNew: 2}",
		members:  []Member{old, absent, absent, absent, old},
		want:     []string{"rcc.s", "ssscr", "sssss"},
	},
	"automatic partitions": {
		strategy: "{autoPartitionThreshold: 2, autoPartitionSize: 50%, maxUnavailable: 1}",
		members:  []Member{old, old, old, old},
		want:     []string{"rs..", "srss", "ssrs", "sssr", "ssss"},
	},
	"everything at once": {
		members: []Member{old, old, absent}, want: []string{"rrc", "sss"},
	},
}

func TestTranscripts(t *testing.T) {
	for name, test := range transcripts {
		t.Run(name, func(t *testing.T) {
			members := append([]Member{}, test.members...)
			var got []string
			for range 20 {
				decision, err := Decide(Input{Strategy: strategy(t, test.strategy), Members: members})
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, letters(decision.Actions))
				if carryOut(members, decision) == 0 && allApplied(members) {
					break
				}
				answerAll(members)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// In whatever order agents answer and however often the controller looks, each rollout ends, and no
// cluster is told twice.
func TestTranscriptsShuffled(t *testing.T) {
	for name, test := range transcripts {
		for seed := range uint64(50) {
			random := rand.New(rand.NewPCG(seed, 11))
			members := append([]Member{}, test.members...)
			told := make([]int, len(members))
			for pass := 0; !allApplied(members); pass++ {
				if pass > 500 {
					t.Fatalf("%s, seed %d: does not end", name, seed)
				}
				decision, err := Decide(Input{Strategy: strategy(t, test.strategy), Members: members})
				if err != nil {
					t.Fatal(err)
				}
				for i, action := range decision.Actions {
					if action.Release {
						told[i]++
					}
				}
				carryOut(members, decision)
				for range random.IntN(3) {
					answer(random, members)
				}
			}
			for i, times := range told {
				if times != 1 {
					t.Errorf("%s, seed %d: cluster %d was told %d times", name, seed, i, times)
				}
			}
		}
	}
}

func answerAll(members []Member) {
	for i := range members {
		if members[i].Exists {
			members[i].Unavailable, members[i].Applied = false, members[i].Released
		}
	}
}
