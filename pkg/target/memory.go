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
	// past are the clusters of the spec before, while a plan looks at those of the present one.
	past map[types.NamespacedName]*evaluation
	// lost are the labels by which the bundle last reached clusters that it does not reach any more, as long as they
	// have deployments of it.
	lost map[types.NamespacedName]map[string]string
	// held are the deployments whose deletion waits for a person.
	held map[types.NamespacedName]bool
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
	m.past, m.clusters = m.clusters, make(map[types.NamespacedName]*evaluation, len(s.Clusters))
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
	before := known
	if before == nil {
		before = m.past[key]
	}
	known = &evaluation{labels: cluster.Labels, annotations: cluster.Annotations, values: cluster.TemplateValues}
	m.clusters[key] = known
	in := match.GroupsOf(cluster.matchable(), m.groups)
	if known.match = m.matcher.Match(cluster.matchable(), in); known.match.Deploy {
		known.partitions = m.matcher.Partitions(cluster.matchable(), in)
		known.wanted = m.resolver.resolve(cluster, known.match)
		delete(m.lost, key)
	} else {
		m.lose(key, before)
	}
	return known
}

// lose notes how the bundle reached a cluster until now, if it did.
func (m *Memory) lose(key types.NamespacedName, before *evaluation) {
	if before == nil || before.wanted == nil {
		return
	}
	if m.lost == nil {
		m.lost = map[types.NamespacedName]map[string]string{}
	}
	m.lost[key] = before.labels
}

// prune forgets clusters that are not there any more, and the spec before.
func (m *Memory) prune(s Snapshot) {
	if len(m.clusters) != len(s.Clusters) || len(m.past) > 0 {
		there := make(map[types.NamespacedName]bool, len(s.Clusters))
		for i := range s.Clusters {
			there[types.NamespacedName{Namespace: s.Clusters[i].Namespace, Name: s.Clusters[i].Name}] = true
		}
		for _, clusters := range []map[types.NamespacedName]*evaluation{m.clusters, m.past} {
			for key, known := range clusters {
				if !there[key] {
					m.lose(key, known)
					delete(clusters, key)
				}
			}
		}
		m.past = nil
	}
	if len(m.lost) == 0 {
		return
	}
	deployed := make(map[types.NamespacedName]bool, len(s.Current))
	for _, deployment := range s.Current {
		deployed[clusterKey(deployment)] = true
	}
	maps.DeleteFunc(m.lost, func(key types.NamespacedName, _ map[string]string) bool { return !deployed[key] })
}

// hold notes whose deletion waits.
func (m *Memory) hold(deletions []Deployment) {
	m.held = make(map[types.NamespacedName]bool, len(deletions))
	for _, deployment := range deletions {
		m.held[deploymentKey(deployment)] = true
	}
}

// deploymentKey tells a bundle's deployments apart, also one that was made anew.
func deploymentKey(deployment Deployment) types.NamespacedName {
	return types.NamespacedName{Namespace: deployment.Object.Namespace, Name: string(deployment.Object.UID)}
}

// wouldReach says that the bundle, as it is now, would still reach a lost cluster if that had the labels by which it was
// reached last. Of what was never seen to be reached, as after a restart, that cannot be said: what waited before the
// spec changed was lost to something else.
func (m *Memory) wouldReach(deployment Deployment) bool {
	key := clusterKey(deployment.Object)
	labels, known := m.lost[key]
	if !known {
		return m.held[deploymentKey(deployment)]
	}
	cluster := match.Cluster{Namespace: key.Namespace, Name: key.Name, Labels: labels}
	return m.matcher.Match(cluster, match.GroupsOf(cluster, m.groups)).Deploy
}

func clusterKey(deployment *fleet.BundleDeployment) types.NamespacedName {
	return types.NamespacedName{Namespace: deployment.Labels[fleet.ClusterNamespaceLabel], Name: deployment.Labels[fleet.ClusterLabel]}
}
