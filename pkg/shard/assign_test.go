package shard

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func membersNamed(count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("fleet-controller-%d", i))
	}
	return names
}

// Every shard has one owner, shares differ by at most one, and the order of names does not matter.
func TestSharesAreEven(t *testing.T) {
	for _, shards := range []int{1, 7, 64, 100} {
		for count := 1; count <= 12; count++ {
			names := membersNamed(count)
			owners := assign(names, shards)
			share := map[string]int{}
			for shard, owner := range owners {
				if !slices.Contains(names, owner) {
					t.Fatalf("shard %d of %d is owned by %q", shard, shards, owner)
				}
				share[owner]++
			}
			for _, name := range names {
				if n := share[name]; n < shards/count || n > (shards+count-1)/count {
					t.Errorf("%d shards, %d members: %s has %d", shards, count, name, n)
				}
			}
			rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			if !slices.Equal(assign(names, shards), owners) {
				t.Errorf("%d shards, %d members: the order of names matters", shards, count)
			}
		}
	}
	if owners := assign(nil, 3); !slices.Equal(owners, []string{"", "", ""}) {
		t.Errorf("without members: %q", owners)
	}
}

// When a member comes or goes, not many more shards move than must: those of the one that goes, or as many as
// the new one gets. Bounded loads move some more.
func TestFewShardsMove(t *testing.T) {
	const shards = 64
	for count := 2; count <= 10; count++ {
		before, after := assign(membersNamed(count), shards), assign(membersNamed(count-1), shards)
		moved := 0
		for shard := range shards {
			if before[shard] != after[shard] {
				moved++
			}
		}
		if must := (shards + count - 1) / count; moved > 2*must {
			t.Errorf("%d members become %d: %d shards move, %d must", count, count-1, moved, must)
		}
	}
}

func TestKeysAreSpread(t *testing.T) {
	counts := make([]int, 64)
	for i := range 6400 {
		counts[Of("fleet-default", fmt.Sprintf("bundle-%d", i), 64)]++
	}
	if lowest, highest := slices.Min(counts), slices.Max(counts); lowest < 60 || highest > 150 {
		t.Errorf("of 6400 keys in 64 shards: %d to %d in one", lowest, highest)
	}
}
