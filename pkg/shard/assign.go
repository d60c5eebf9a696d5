package shard

import (
	"cmp"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
)

// Of returns the shard of a key, of so many.
func Of(namespace, name string, shards int) int {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, namespace+"/"+name)
	return int(mix(hash.Sum64()) % uint64(shards))
}

// assign gives every shard to a member, each member as many as the others or one more. It depends on nothing
// but the names, and when a member comes or goes few shards move that need not: every shard goes to the member
// of the highest hash of both that has room (rendezvous hashing with bounded loads).
func assign(members []string, shards int) []string {
	owners := make([]string, shards)
	members = slices.Clone(members)
	slices.Sort(members)
	members = slices.Compact(members)
	if len(members) == 0 {
		return owners
	}
	room := make(map[string]int, len(members))
	spare := shards % len(members)
	for shard := range shards {
		ranked := slices.SortedFunc(slices.Values(members), func(a, b string) int {
			return cmp.Or(cmp.Compare(weight(shard, b), weight(shard, a)), cmp.Compare(a, b))
		})
		for _, member := range ranked {
			full := room[member] > shards/len(members)
			if room[member] == shards/len(members) {
				full = spare == 0
			}
			if full {
				continue
			}
			if room[member] == shards/len(members) {
				spare--
			}
			room[member]++
			owners[shard] = member
			break
		}
	}
	return owners
}

func weight(shard int, member string) uint64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, strconv.Itoa(shard)+"/"+member)
	return mix(hash.Sum64())
}

// mix spreads the bits of an FNV hash, which differ little for names that differ in the last letter.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
