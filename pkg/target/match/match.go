package match

import (
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ReasonInvalidSelector is the reason of the error for a selector that cannot be read.
const ReasonInvalidSelector = "InvalidSelector"

// Matcher holds a bundle's target lists, compiled.
type Matcher struct {
	mode fleet.TargetCustomizationMode
	// first is the index in the bundle's targets where the destinations start.
	first        int
	targets      []*Selector
	skip         []bool
	restrictions []*Selector
	partitions   []*Selector
}

// Compile prepares the targets of a bundle. With N restrictions the last N targets are destinations and
// those before them customizations; without restrictions every target is a destination. An invalid
// selector is an error of class Stalled that names its entry.
func Compile(spec *fleet.BundleSpec) (*Matcher, error) {
	matcher := &Matcher{mode: spec.TargetCustomizationMode}
	if restricted := len(spec.TargetRestrictions); restricted > 0 {
		matcher.first = max(len(spec.Targets)-restricted, 0)
	}
	for i := range spec.Targets {
		target := &spec.Targets[i]
		if err := compileInto(&matcher.targets, target.ClusterTarget, "target", i); err != nil {
			return nil, err
		}
		matcher.skip = append(matcher.skip, target.DoNotDeploy)
	}
	for i, restriction := range spec.TargetRestrictions {
		if err := compileInto(&matcher.restrictions, restriction, "target restriction", i); err != nil {
			return nil, err
		}
	}
	if spec.RolloutStrategy == nil {
		return matcher, nil
	}
	for i, partition := range spec.RolloutStrategy.Partitions {
		if err := compileInto(&matcher.partitions, partition.ClusterTarget, "rollout partition", i); err != nil {
			return nil, err
		}
	}
	return matcher, nil
}

func compileInto(list *[]*Selector, target fleet.ClusterTarget, kind string, index int) error {
	selector, err := NewSelector(target)
	if err != nil {
		return fault.Wrap(fault.Stalled, ReasonInvalidSelector, fmt.Errorf("compile %s %d (%q): %w", kind, index+1, target.Name, err))
	}
	*list = append(*list, selector)
	return nil
}

// Result says whether a bundle goes to a cluster and with which entries of its targets.
type Result struct {
	// Deploy says that the cluster is reached.
	Deploy bool
	// Destination is the index in spec.targets of the entry that reaches the cluster; -1 when none does.
	Destination int
	// Customizations are the indexes in spec.targets of the entries that apply, in order.
	Customizations []int
	// DoNotDeploy is the index of the entry that takes the cluster out; -1 when none does.
	DoNotDeploy int
}

// Options returns the indexes in spec.targets whose options apply, lowest first. A single first match
// takes the place of the destination's options; all matches are put over them.
func (r Result) Options(mode fleet.TargetCustomizationMode) []int {
	if mode != fleet.AllMatches && len(r.Customizations) > 0 {
		return r.Customizations[:1]
	}
	return append([]int{r.Destination}, r.Customizations...)
}

// Match decides for one cluster and the groups it is in.
func (m *Matcher) Match(cluster Cluster, groups []Group) Result {
	result := Result{Destination: m.destination(cluster, groups), DoNotDeploy: -1}
	if result.Destination < 0 {
		return result
	}
	if m.skip[result.Destination] {
		result.DoNotDeploy = result.Destination
	}
	for i := range m.first {
		if !m.targets[i].Matches(cluster, groups) {
			continue
		}
		result.Customizations = append(result.Customizations, i)
		if m.skip[i] && result.DoNotDeploy < 0 {
			result.DoNotDeploy = i
		}
		if m.mode != fleet.AllMatches {
			break
		}
	}
	result.Deploy = result.DoNotDeploy < 0
	return result
}

// destination returns the first destination that selects the cluster while a restriction does, both for
// the same group.
func (m *Matcher) destination(cluster Cluster, groups []Group) int {
	for i := m.first; i < len(m.targets); i++ {
		if m.permitted(m.targets[i], cluster, nil) {
			return i
		}
		for g := range groups {
			if m.permitted(m.targets[i], cluster, &groups[g]) {
				return i
			}
		}
	}
	return -1
}

func (m *Matcher) permitted(destination *Selector, cluster Cluster, group *Group) bool {
	if destination.failure(cluster, group) != "" {
		return false
	}
	return m.unrestricted(cluster, group)
}

func (m *Matcher) unrestricted(cluster Cluster, group *Group) bool {
	for _, restriction := range m.restrictions {
		if restriction.failure(cluster, group) == "" {
			return true
		}
	}
	return len(m.restrictions) == 0
}

// Partitions returns the indexes of the manual rollout partitions the cluster is in.
func (m *Matcher) Partitions(cluster Cluster, groups []Group) []int {
	var in []int
	for i, partition := range m.partitions {
		if partition.Matches(cluster, groups) {
			in = append(in, i)
		}
	}
	return in
}

// Keys returns, sorted, the keys of cluster labels that the answer depends on. A change of other labels
// changes no match of this bundle (it may change what templates render to).
func (m *Matcher) Keys(groups []Group) []string {
	set := map[string]bool{}
	for _, list := range [][]*Selector{m.targets, m.restrictions, m.partitions} {
		for _, selector := range list {
			selector.keys(set, groups)
		}
	}
	return sortedKeys(set)
}
