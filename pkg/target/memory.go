package target

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/policy"
	"github.com/fairlead-dev/fairlead/pkg/target/match"
)

// Memory keeps what was worked out for the clusters of one bundle from plan to plan, so that the next one
// works out what changed. It is for one bundle, whose values and files do not change without its generation
// and its content's name, and not safe for concurrent use. The zero value is ready.
type Memory struct {
	// Evaluated and Cached count the clusters of the last plan that were worked out and those that were not.
	Evaluated, Cached int

	of       remembered
	rules    policy.Rules
	matcher  *match.Matcher
	groups   []match.Group
	warnings []error
	resolver *resolver
	clusters map[types.NamespacedName]*evaluation
}

// remembered is what everything in a Memory depends on.
type remembered struct {
	uid        types.UID
	generation int64
	manifestID string
	groups     string
}

// evaluation is what was worked out for one cluster.
type evaluation struct {
	labels, annotations map[string]string
	values              *fleet.GenericMap
	// wanted is nil for a cluster that is not reached.
	wanted     *Wanted
	match      match.Result
	partitions []int
}

// MayReach says that the bundle reached a cluster ("namespace/name") in the last plan, or that it was not asked.
func (m *Memory) MayReach(cluster string) bool {
	namespace, name, _ := strings.Cut(cluster, "/")
	known := m.clusters[types.NamespacedName{Namespace: namespace, Name: name}]
	return known == nil || known.wanted != nil
}

// open prepares the memory for a snapshot, and forgets everything when it was of another bundle, of another
// version of it, or of other groups or rules.
func (m *Memory) open(s Snapshot) error {
	m.Evaluated, m.Cached = 0, 0
	of := remembered{
		uid: s.Bundle.UID, generation: s.Bundle.Generation, manifestID: s.ManifestID,
		groups: fingerprint(s),
	}
	if m.clusters != nil && m.of == of && reflect.DeepEqual(m.rules, s.Rules) {
		m.resolver.bundle = s.Bundle
		return nil
	}
	matcher, err := match.Compile(&s.Bundle.Spec)
	if err != nil {
		return fmt.Errorf("target bundle %s/%s: %w", s.Bundle.Namespace, s.Bundle.Name, err)
	}
	groups, warnings := match.Groups(s.Groups)
	m.of, m.rules, m.matcher, m.groups, m.warnings = of, s.Rules, matcher, groups, warnings
	m.resolver = &resolver{bundle: s.Bundle, manifestID: s.ManifestID, rules: s.Rules, resolved: map[string]*resolved{}}
	m.clusters = make(map[types.NamespacedName]*evaluation, len(s.Clusters))
	return nil
}

// fingerprint changes with the groups, for a bundle that refers to any.
func fingerprint(s Snapshot) string {
	if !RefersToGroups(&s.Bundle.Spec) {
		return ""
	}
	list := make([]string, len(s.Groups))
	for i := range s.Groups {
		group := &s.Groups[i]
		list[i] = fmt.Sprint(group.Namespace, "/", group.Name, " ", group.UID, " ", group.Generation, " ", group.Labels)
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// RefersToGroups says that a bundle names cluster groups or selects some by their labels.
func RefersToGroups(spec *fleet.BundleSpec) bool {
	return slices.ContainsFunc(Selectors(spec), func(target fleet.ClusterTarget) bool {
		return target.ClusterGroup != "" || target.ClusterGroupSelector != nil
	})
}

// Selectors lists all by which a bundle selects clusters: restrictions, targets and partitions.
func Selectors(spec *fleet.BundleSpec) []fleet.ClusterTarget {
	all := slices.Clone(spec.TargetRestrictions)
	for i := range spec.Targets {
		all = append(all, spec.Targets[i].ClusterTarget)
	}
	if spec.RolloutStrategy != nil {
		for i := range spec.RolloutStrategy.Partitions {
			all = append(all, spec.RolloutStrategy.Partitions[i].ClusterTarget)
		}
	}
	return all
}

// evaluate returns what the bundle is for a cluster.
func (m *Memory) evaluate(cluster *ClusterInfo) *evaluation {
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	known := m.clusters[key]
	if known != nil && reflect.DeepEqual(known.values, cluster.TemplateValues) && maps.Equal(known.labels, cluster.Labels) && maps.Equal(known.annotations, cluster.Annotations) {
		m.Cached++
		return known
	}
	m.Evaluated++
	known = &evaluation{labels: cluster.Labels, annotations: cluster.Annotations, values: cluster.TemplateValues}
	m.clusters[key] = known
	in := match.GroupsOf(cluster.matchable(), m.groups)
	if known.match = m.matcher.Match(cluster.matchable(), in); known.match.Deploy {
		known.partitions = m.matcher.Partitions(cluster.matchable(), in)
		known.wanted = m.resolver.resolve(cluster, known.match)
	}
	return known
}

// prune forgets clusters that are not there any more.
func (m *Memory) prune(clusters []ClusterInfo) {
	if len(m.clusters) == len(clusters) {
		return
	}
	there := make(map[types.NamespacedName]bool, len(clusters))
	for i := range clusters {
		there[types.NamespacedName{Namespace: clusters[i].Namespace, Name: clusters[i].Name}] = true
	}
	maps.DeleteFunc(m.clusters, func(key types.NamespacedName, _ *evaluation) bool { return !there[key] })
}
