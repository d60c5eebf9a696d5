package match

import (
	"fmt"
	"maps"
	"slices"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Cluster is what a selector sees of a cluster.
type Cluster struct {
	Namespace string
	Name      string
	Labels    map[string]string
}

// Group is a cluster group with its selector ready for use.
type Group struct {
	Namespace string
	Name      string
	Labels    map[string]string
	selector  labels.Selector
}

// Groups prepares cluster groups, sorted by namespace and name. A group without a selector has no
// members. A group whose selector is invalid has none either, and is named in the second result, so that
// one broken group does not stop every bundle.
func Groups(objects []fleet.ClusterGroup) ([]Group, []error) {
	var groups []Group
	var invalid []error
	for i := range objects {
		object := &objects[i]
		if object.Spec.Selector == nil {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
		if err != nil {
			invalid = append(invalid, fmt.Errorf("read selector of cluster group %s/%s: %w", object.Namespace, object.Name, err))
			continue
		}
		groups = append(groups, Group{Namespace: object.Namespace, Name: object.Name, Labels: object.Labels, selector: selector})
	}
	sort.SliceStable(groups, func(i, j int) bool {
		if groups[i].Namespace != groups[j].Namespace {
			return groups[i].Namespace < groups[j].Namespace
		}
		return groups[i].Name < groups[j].Name
	})
	return groups, invalid
}

// GroupsOf returns the groups the cluster is in, in the order given. A group holds clusters of its own
// namespace only.
func GroupsOf(cluster Cluster, groups []Group) []Group {
	var in []Group
	for _, group := range groups {
		if group.Namespace == cluster.Namespace && group.selector.Matches(labels.Set(cluster.Labels)) {
			in = append(in, group)
		}
	}
	return in
}

// Selector is one compiled selector block: all criteria that are present must hold.
type Selector struct {
	name          string
	clusterName   string
	clusterGroup  string
	clusterLabels labels.Selector
	groupLabels   labels.Selector
}

// NewSelector compiles a selector block; the error names an invalid label selector.
func NewSelector(target fleet.ClusterTarget) (*Selector, error) {
	compiled := &Selector{name: target.Name, clusterName: target.ClusterName, clusterGroup: target.ClusterGroup}
	var err error
	if target.ClusterSelector != nil {
		if compiled.clusterLabels, err = metav1.LabelSelectorAsSelector(target.ClusterSelector); err != nil {
			return nil, fmt.Errorf("read clusterSelector: %w", err)
		}
	}
	if target.ClusterGroupSelector != nil {
		if compiled.groupLabels, err = metav1.LabelSelectorAsSelector(target.ClusterGroupSelector); err != nil {
			return nil, fmt.Errorf("read clusterGroupSelector: %w", err)
		}
	}
	return compiled, nil
}

// Matches says whether the block selects the cluster, given the groups it is in. Criteria about the
// group's name and the group's labels must hold for the same group.
func (s *Selector) Matches(cluster Cluster, groups []Group) bool {
	if s.failure(cluster, nil) == "" {
		return true
	}
	return slices.ContainsFunc(groups, func(group Group) bool { return s.failure(cluster, &group) == "" })
}

// Reason returns why the block does not select the cluster, or "" when it does.
func (s *Selector) Reason(cluster Cluster, groups []Group) string {
	if s.Matches(cluster, groups) {
		return ""
	}
	if len(groups) == 1 {
		return s.failure(cluster, &groups[0])
	}
	return s.failure(cluster, nil)
}

// failure returns the first criterion that does not hold for the cluster and one of its groups, or for
// the cluster outside of any group when group is nil.
func (s *Selector) failure(cluster Cluster, group *Group) string {
	switch {
	case s.clusterName == "" && s.clusterGroup == "" && s.clusterLabels == nil && s.groupLabels == nil:
		return "it has no criteria, so it selects nothing"
	case s.clusterName != "" && s.clusterName != cluster.Name && s.clusterName != cluster.Labels[fleet.DisplayNameLabel]:
		return fmt.Sprintf("clusterName %q is another cluster", s.clusterName)
	case s.clusterLabels != nil && !s.clusterLabels.Matches(labels.Set(cluster.Labels)):
		return fmt.Sprintf("clusterSelector %q does not match the cluster's labels", s.clusterLabels)
	}
	return s.groupFailure(group)
}

func (s *Selector) groupFailure(group *Group) string {
	switch {
	case s.clusterGroup != "" && (group == nil || s.clusterGroup != group.Name):
		return fmt.Sprintf("the cluster is not in clusterGroup %q", s.clusterGroup)
	case s.groupLabels != nil && group == nil:
		return fmt.Sprintf("no group of the cluster has labels that match clusterGroupSelector %q", s.groupLabels)
	case s.groupLabels != nil && !s.groupLabels.Matches(labels.Set(group.Labels)):
		return fmt.Sprintf("clusterGroupSelector %q does not match the labels of group %s", s.groupLabels, group.Name)
	}
	return ""
}

// keys adds the label keys of clusters that the block looks at. A block that looks at groups depends on
// the labels the groups select by, so it adds those of the groups given.
func (s *Selector) keys(into map[string]bool, groups []Group) {
	if s.clusterName != "" {
		into[fleet.DisplayNameLabel] = true
	}
	addKeys(into, s.clusterLabels)
	if s.clusterGroup == "" && s.groupLabels == nil {
		return
	}
	for _, group := range groups {
		if s.clusterGroup == "" || s.clusterGroup == group.Name {
			addKeys(into, group.selector)
		}
	}
}

func addKeys(into map[string]bool, selector labels.Selector) {
	if selector == nil {
		return
	}
	requirements, _ := selector.Requirements()
	for _, requirement := range requirements {
		into[requirement.Key()] = true
	}
}

func sortedKeys(set map[string]bool) []string {
	return slices.Sorted(maps.Keys(set))
}
