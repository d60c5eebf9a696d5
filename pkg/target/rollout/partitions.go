package rollout

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Names of partitions that nobody listed.
const (
	everyone = "All"
	rest     = "Rest"
)

// partition is a part of the members, by index, in order.
type partition struct {
	name           string
	members        []int
	maxUnavailable int
	// own is the partition's limit in the strategy.
	own *intstr.IntOrString
	// mandatory partitions tolerate no failure, and strict ones open the next one only when every member
	// has succeeded.
	mandatory, strict bool
}

// partitions divides the members by the strategy's type: as listed, else in slices from a threshold on,
// else all in one.
func (l limits) partitions(members []Member) ([]partition, error) {
	parts, err := l.divided(members)
	if err != nil {
		return nil, err
	}
	for i := range parts {
		part := &parts[i]
		part.strict = part.mandatory || l.minSuccess > 0 || l.kind == fleet.RolloutProgressivePerGroup
		value := part.own
		if value == nil && l.kind != fleet.RolloutAll {
			value = l.strategy.MaxUnavailable
		}
		if part.maxUnavailable, err = limit("maxUnavailable of partition "+strconv.Quote(part.name), len(part.members), value, defaultMaxUnavailable); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func (l limits) divided(members []Member) ([]partition, error) {
	all := partition{name: everyone, members: indexes(0, len(members))}
	if l.kind == fleet.RolloutAll {
		return []partition{all}, nil
	}
	if len(l.strategy.Partitions) > 0 || len(l.strategy.MandatoryPartitions) > 0 {
		parts, err := l.ordered(l.manual(members))
		if err != nil || l.kind != fleet.RolloutProgressive {
			return parts, err
		}
		return merged(parts, len(members)), nil
	}
	threshold := DefaultAutoPartitionThreshold
	if l.strategy.AutoPartitionThreshold != nil {
		threshold = *l.strategy.AutoPartitionThreshold
	}
	size, err := limit("autoPartitionSize", len(members), l.strategy.AutoPartitionSize, defaultAutoPartitionSize)
	if err != nil {
		return nil, err
	}
	if threshold <= 0 || len(members) < threshold || size <= 0 || l.kind == fleet.RolloutProgressive {
		return []partition{all}, nil
	}
	var parts []partition
	for from := 0; from < len(members); from += size {
		to := min(from+size, len(members))
		parts = append(parts, partition{name: fmt.Sprintf("Partition %d - %d", from, to), members: indexes(from, to)})
	}
	return parts, nil
}

// manual puts each member into every partition it matches, and those that match none into a last one.
func (l limits) manual(members []Member) []partition {
	parts := make([]partition, len(l.strategy.Partitions))
	for i, listed := range l.strategy.Partitions {
		parts[i].name, parts[i].own = listed.Name, listed.MaxUnavailable
	}
	last := partition{name: rest}
	for i, member := range members {
		for _, p := range member.Partitions {
			parts[p].members = append(parts[p].members, i)
		}
		if len(member.Partitions) == 0 {
			last.members = append(last.members, i)
		}
	}
	if len(last.members) > 0 {
		parts = append(parts, last)
	}
	return parts
}

// ordered puts the mandatory partitions first.
func (l limits) ordered(parts []partition) ([]partition, error) {
	var first []partition
	for _, name := range l.strategy.MandatoryPartitions {
		at := slices.IndexFunc(parts, func(p partition) bool { return p.name == name && !p.mandatory })
		if at < 0 || at >= len(l.strategy.Partitions) {
			return nil, fault.New(fault.Stalled, ReasonInvalidRollout, "read rolloutStrategy: mandatoryPartitions names %q, which is not one of the partitions, or was named before", name)
		}
		parts[at].mandatory = true
		first = append(first, parts[at])
	}
	return append(first, slices.DeleteFunc(parts, func(p partition) bool { return p.mandatory })...), nil
}

// merged makes one partition of those that are not mandatory, in their order.
func merged(parts []partition, count int) []partition {
	taken := make([]bool, count)
	one := partition{name: everyone}
	var kept []partition
	for _, part := range parts {
		if part.mandatory {
			kept, one.name = append(kept, part), rest
		}
		for _, i := range part.members {
			if !taken[i] && !part.mandatory {
				one.members = append(one.members, i)
			}
			taken[i] = true
		}
	}
	if len(one.members) > 0 || len(kept) == 0 {
		kept = append(kept, one)
	}
	return kept
}

func indexes(from, to int) []int {
	list := make([]int, 0, to-from)
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}
