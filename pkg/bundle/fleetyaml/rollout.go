package fleetyaml

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const rolloutKey = "rolloutStrategy"

func (p *parser) checkRollout(strategy *fleet.RolloutStrategy) {
	if strategy == nil {
		return
	}
	p.checkAmount(rolloutKey+".maxUnavailable", strategy.MaxUnavailable)
	p.checkAmount(rolloutKey+".maxUnavailablePartitions", strategy.MaxUnavailablePartitions)
	p.checkAmount(rolloutKey+".autoPartitionSize", strategy.AutoPartitionSize)
	p.checkAmount(rolloutKey+".maxConcurrency", strategy.MaxConcurrency)
	p.checkAmount(rolloutKey+".maxFailures", strategy.MaxFailures)
	if strategy.MaxNew != nil && *strategy.MaxNew < 0 {
		p.fail(p.at(rolloutKey+".maxNew"), "rolloutStrategy.maxNew: want a number of clusters, got %d", *strategy.MaxNew)
	}
	p.checkSpan(rolloutKey+".minSuccessTime", strategy.MinSuccessTime)
	p.checkSpan(rolloutKey+".progressDeadline", strategy.ProgressDeadline)
	for i, partition := range strategy.Partitions {
		path := fmt.Sprintf("rolloutStrategy.partitions[%d]", i)
		if selectsNothing(partition.ClusterTarget) {
			p.warn(p.at(path), "%s: has no selector, so no cluster is ever in it", path)
		}
		p.checkSelectors(path, partition.ClusterTarget)
		p.checkAmount(path+".maxUnavailable", partition.MaxUnavailable)
	}
	p.checkMandatory(strategy)
	p.checkType(strategy)
}

// checkMandatory finds names that no partition has.
func (p *parser) checkMandatory(strategy *fleet.RolloutStrategy) {
	for i, name := range strategy.MandatoryPartitions {
		path := fmt.Sprintf("rolloutStrategy.mandatoryPartitions[%d]", i)
		if !slices.ContainsFunc(strategy.Partitions, func(one fleet.Partition) bool { return one.Name == name }) {
			p.fail(p.at(path), "%s: there is no partition named %q", path, name)
		}
		if slices.Contains(strategy.MandatoryPartitions[:i], name) {
			p.fail(p.at(path), "%s: %q is listed twice", path, name)
		}
	}
}

// checkType finds types that do not exist, and settings that the type does not look at.
func (p *parser) checkType(strategy *fleet.RolloutStrategy) {
	if strategy.Type == nil {
		return
	}
	unused := map[string]bool{}
	switch kind := *strategy.Type; kind {
	case fleet.RolloutPartitioned, fleet.RolloutProgressivePerGroup:
	case fleet.RolloutAll:
		unused["maxUnavailable"], unused["maxConcurrency"] = strategy.MaxUnavailable != nil, strategy.MaxConcurrency != nil
		unused["partitions"], unused["mandatoryPartitions"] = strategy.Partitions != nil, strategy.MandatoryPartitions != nil
		fallthrough
	case fleet.RolloutProgressive:
		unused["autoPartitionSize"], unused["autoPartitionThreshold"] = strategy.AutoPartitionSize != nil, strategy.AutoPartitionThreshold != nil
		unused["maxUnavailablePartitions"] = strategy.MaxUnavailablePartitions != nil
	default:
		p.fail(p.at(rolloutKey+".type"), "rolloutStrategy.type: want %s, %s, %s or %s, got %q",
			fleet.RolloutPartitioned, fleet.RolloutAll, fleet.RolloutProgressive, fleet.RolloutProgressivePerGroup, kind)
	}
	for _, key := range []string{"maxUnavailable", "maxUnavailablePartitions", "maxConcurrency", "autoPartitionSize", "autoPartitionThreshold", "partitions", "mandatoryPartitions"} {
		if unused[key] {
			p.warn(p.at(rolloutKey+"."+key), "rolloutStrategy.%s: has no effect with type %s", key, *strategy.Type)
		}
	}
}

// checkSpan refuses spans of time that run backwards.
func (p *parser) checkSpan(path string, span *fleet.Duration) {
	if span != nil && span.Duration < 0 {
		p.fail(p.at(path), "%s: want a span of time such as 10m, got %s", path, span.Duration)
	}
}

func (p *parser) checkAmount(path string, value *intstr.IntOrString) {
	if value == nil {
		return
	}
	if number, err := strconv.Atoi(value.StrVal); err == nil && number > 0 {
		return // digits in a string are a number, for upstream too
	}
	if amount, err := intstr.GetScaledValueFromIntOrPercent(value, 100, true); err != nil || amount < 0 {
		p.fail(p.at(path), "%s: want a number or a percentage such as 25%%, got %q", path, value.String())
	}
}
