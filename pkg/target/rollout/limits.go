package rollout

import (
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
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
	defaultMaxConcurrency           = intstr.FromString("25%")
	defaultMaxFailures              = intstr.FromInt32(0)
)

// mostPercent is far beyond what makes a difference, and no product with it overflows.
const mostPercent = 10_000

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
	percent, isPercent, err := percentage(field, value.StrVal)
	if err != nil {
		return 0, err
	}
	if isPercent {
		return max(percent*count/100, 1), nil
	}
	number, err := strconv.Atoi(value.StrVal)
	if err != nil || number <= 0 {
		return 0, invalid(field, value.StrVal)
	}
	return number, nil
}

func percentage(field, text string) (percent int, isPercent bool, err error) {
	digits, isPercent := strings.CutSuffix(text, "%")
	if !isPercent {
		return 0, false, nil
	}
	percent, err = strconv.Atoi(digits)
	if err != nil || percent < 0 {
		return 0, true, invalid(field, text)
	}
	return min(percent, mostPercent), true, nil
}

// tolerance turns maxFailures into a count. Unlike a limit it may be 0 whatever its form: a small percentage
// of few clusters tolerates nothing.
func tolerance(count int, value intstr.IntOrString) (int, error) {
	const field = "maxFailures"
	if value.Type == intstr.Int {
		return max(int(value.IntVal), 0), nil
	}
	if percent, isPercent, err := percentage(field, value.StrVal); isPercent {
		return percent * count / 100, err
	}
	number, err := strconv.Atoi(value.StrVal)
	if err != nil || number < 0 {
		return 0, invalid(field, value.StrVal)
	}
	return number, nil
}

func invalid(field, text string) error {
	return fault.New(fault.Stalled, ReasonInvalidRollout, "read rolloutStrategy: %s is %q, want a number or a percentage such as 25%%", field, text)
}

// limits is a strategy with its defaults, for a count of clusters.
type limits struct {
	kind                    fleet.RolloutType
	maxUnavailable, maxNew  int
	maxConcurrency, offline int
	// maxFailures is nil when failures never halt the rollout.
	maxFailures          *intstr.IntOrString
	minSuccess, deadline time.Duration
	strategy             *fleet.RolloutStrategy
}

func newLimits(strategy *fleet.RolloutStrategy, offlineBudget *intstr.IntOrString, count int) (limits, error) {
	if strategy == nil {
		strategy = &fleet.RolloutStrategy{}
	}
	l := limits{kind: fleet.RolloutPartitioned, maxNew: DefaultMaxNew, maxFailures: strategy.MaxFailures, strategy: strategy}
	if strategy.Type != nil && *strategy.Type != "" {
		l.kind = *strategy.Type
	}
	if strategy.MaxNew != nil {
		l.maxNew = *strategy.MaxNew
	}
	if strategy.MinSuccessTime != nil {
		l.minSuccess = strategy.MinSuccessTime.Duration
	}
	if strategy.ProgressDeadline != nil {
		l.deadline = strategy.ProgressDeadline.Duration
	}
	var err error
	if l.offline, err = limit("the budget for offline clusters", count, offlineBudget, defaultOfflineBudget); err != nil {
		return limits{}, err
	}
	if l.maxUnavailable, err = limit("maxUnavailable", count, strategy.MaxUnavailable, defaultMaxUnavailable); err != nil {
		return limits{}, err
	}
	if err := l.progressive(count); err != nil {
		return limits{}, err
	}
	return l, nil
}

// progressive sets the limits that depend on the type.
func (l *limits) progressive(count int) error {
	l.maxConcurrency = math.MaxInt
	concurrency := l.strategy.MaxConcurrency
	switch l.kind {
	case fleet.RolloutPartitioned:
	case fleet.RolloutAll:
		l.maxUnavailable, concurrency = max(count, 1), nil
	case fleet.RolloutProgressive:
		if concurrency == nil {
			concurrency = &defaultMaxConcurrency
		}
	case fleet.RolloutProgressivePerGroup:
	default:
		return fault.New(fault.Stalled, ReasonInvalidRollout, "read rolloutStrategy: type is %q, want %s, %s, %s or %s", l.kind,
			fleet.RolloutPartitioned, fleet.RolloutAll, fleet.RolloutProgressive, fleet.RolloutProgressivePerGroup)
	}
	if l.maxFailures == nil && (l.kind == fleet.RolloutProgressive || l.kind == fleet.RolloutProgressivePerGroup) {
		l.maxFailures = &defaultMaxFailures
	}
	if concurrency == nil {
		return nil
	}
	var err error
	l.maxConcurrency, err = limit("maxConcurrency", count, concurrency, defaultMaxConcurrency)
	return err
}
