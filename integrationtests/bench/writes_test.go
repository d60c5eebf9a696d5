package bench

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
)

// Who writes, as the figures call them.
const (
	theController = "controller"
	theAgents     = "agents"
)

// writer returns which of our programs a write is of, "" for all others.
func writer(write writes.Write) string {
	const accounts = "system:serviceaccount:" + stack.SystemNamespace + ":"
	switch {
	case write.User == accounts+"fleet-controller":
		return theController
	case write.User == accounts+"fleet-agent", strings.HasPrefix(write.User, "system:fleet:"):
		return theAgents
	}
	return ""
}

// ours lists the writes of our programs on a cluster, but for leases.
func ours(t testing.TB, cluster *kube.Cluster) []writes.Write {
	t.Helper()
	all, err := cluster.Writes()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(write writes.Write) bool {
		return writer(write) == "" || !writes.NotLeases(write.Request) || !writes.Stored(write.Request)
	})
}

// kind is what tallies count by.
type kind struct{ who, verb, what string }

func (k kind) String() string { return fmt.Sprintf("%s: %s %s", k.who, k.verb, k.what) }

func kindOf(write writes.Write) kind {
	k := kind{writer(write), write.Verb, write.Resource}
	if write.Subresource != "" {
		k.what += "/" + write.Subresource
	}
	return k
}

// tally counts writes.
type tally map[kind]int

func tallyOf(list []writes.Write) tally {
	counts := tally{}
	for _, write := range list {
		counts[kindOf(write)]++
	}
	return counts
}

// only returns the writes that have a property.
func only(list []writes.Write, has func(writes.Request) bool) []writes.Write {
	return slices.DeleteFunc(slices.Clone(list), func(write writes.Write) bool { return !has(write.Request) })
}

func (c tally) total() int {
	total := 0
	for _, count := range c {
		total += count
	}
	return total
}

// kinds returns the kinds of several tallies, sorted.
func kinds(tallies ...tally) []kind {
	all := tally{}
	for _, counts := range tallies {
		maps.Copy(all, counts)
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b kind) int {
		return cmp.Or(cmp.Compare(b.who, a.who), cmp.Compare(a.what, b.what), cmp.Compare(a.verb, b.verb))
	})
}
