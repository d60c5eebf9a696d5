package rollout

import (
	"fmt"
	"strconv"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ReasonInvalidRollout is the reason of the error for a rollout strategy that cannot be read.
const ReasonInvalidRollout = "InvalidRollout"

// What holds when a strategy does not say otherwise.
const (
	DefaultMaxNew                 = 50
	DefaultAutoPartitionThreshold = 200
)

var (
	defaultMaxUnavailable           = intstr.FromString("100%")
	defaultMaxUnavailablePartitions = intstr.FromInt32(0)
	defaultAutoPartitionSize        = intstr.FromString("25%")
	defaultOfflineBudget            = intstr.FromString("25%")
)

// limit turns a number or percentage into a count. A number is capped to count and never negative; a
// percentage is rounded down, and 1 at least; digits in a string are a number without a cap. Of nothing the
// limit is 1.
func limit(field string, count int, value *intstr.IntOrString, missing intstr.IntOrString) (int, error) {
	if count == 0 {
		return 1, nil
	}
	if value == nil {
		value = &missing
	}
	if value.Type == intstr.Int {
		return max(min(int(value.IntVal), count), 0), nil
	}
	text := value.StrVal
	if digits, isPercent := strings.CutSuffix(text, "%"); isPercent {
		percent, err := strconv.Atoi(digits)
		if err != nil || percent < 0 {
			return 0, invalid(field, text)
		}
		return max(int(float64(percent)/100*float64(count)), 1), nil
	}
	number, err := strconv.Atoi(text)
	if err != nil || number <= 0 {
		return 0, invalid(field, text)
	}
	return number, nil
}

func invalid(field, text string) error {
	return fault.New(fault.Stalled, ReasonInvalidRollout, "read rolloutStrategy: %s is %q, want a number or a percentage such as 25%%", field, text)
}

// limits is a strategy with its defaults, for a count of clusters.
type limits struct {
	maxUnavailable, maxNew, offline int
	strategy                        *fleet.RolloutStrategy
}

func newLimits(strategy *fleet.RolloutStrategy, offlineBudget *intstr.IntOrString, count int) (limits, error) {
	if strategy == nil {
		strategy = &fleet.RolloutStrategy{}
	}
	l := limits{maxNew: DefaultMaxNew, strategy: strategy}
	if strategy.MaxNew != nil {
		l.maxNew = *strategy.MaxNew
	}
	var err error
	if l.maxUnavailable, err = limit("maxUnavailable", count, strategy.MaxUnavailable, defaultMaxUnavailable); err != nil {
		return limits{}, err
	}
	if l.offline, err = limit("the budget for offline clusters", count, offlineBudget, defaultOfflineBudget); err != nil {
		return limits{}, err
	}
	return l, nil
}

// partition is a part of the members, by index, in order.
type partition struct {
	name           string
	members        []int
	maxUnavailable int
}

// partitions divides the members: as listed, else in slices from a threshold on, else all in one.
func (l limits) partitions(members []Member) ([]partition, error) {
	if len(l.strategy.Partitions) > 0 {
		return l.manual(members)
	}
	threshold := DefaultAutoPartitionThreshold
	if l.strategy.AutoPartitionThreshold != nil {
		threshold = *l.strategy.AutoPartitionThreshold
	}
	size, err := limit("autoPartitionSize", len(members), l.strategy.AutoPartitionSize, defaultAutoPartitionSize)
	if err != nil {
		return nil, err
	}
	if threshold <= 0 || len(members) < threshold || size <= 0 {
		return l.sized([]partition{{name: "All", members: indexes(0, len(members))}}, nil)
	}
	var parts []partition
	for from := 0; from < len(members); from += size {
		to := min(from+size, len(members))
		parts = append(parts, partition{name: fmt.Sprintf("Partition %d - %d", from, to), members: indexes(from, to)})
	}
	return l.sized(parts, nil)
}

// manual puts each member into every partition it matches, and those that match none into a last one.
func (l limits) manual(members []Member) ([]partition, error) {
	parts := make([]partition, len(l.strategy.Partitions))
	own := make([]*intstr.IntOrString, len(parts))
	for i, listed := range l.strategy.Partitions {
		parts[i].name, own[i] = listed.Name, listed.MaxUnavailable
	}
	rest := partition{name: "Rest"}
	for i, member := range members {
		for _, p := range member.Partitions {
			parts[p].members = append(parts[p].members, i)
		}
		if len(member.Partitions) == 0 {
			rest.members = append(rest.members, i)
		}
	}
	if len(rest.members) > 0 {
		parts, own = append(parts, rest), append(own, nil)
	}
	return l.sized(parts, own)
}

func (l limits) sized(parts []partition, own []*intstr.IntOrString) ([]partition, error) {
	for i := range parts {
		value := l.strategy.MaxUnavailable
		if i < len(own) && own[i] != nil {
			value = own[i]
		}
		var err error
		if parts[i].maxUnavailable, err = limit("maxUnavailable of partition "+strconv.Quote(parts[i].name), len(parts[i].members), value, defaultMaxUnavailable); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func indexes(from, to int) []int {
	list := make([]int, 0, to-from)
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}
