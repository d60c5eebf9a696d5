package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	summary "github.com/fairlead-dev/fairlead/pkg/status"
)

// maxNamed clusters and deployments are named in a group's status; counts are always complete.
const maxNamed = 10

// Selector returns the selector of a group's members: nothing for a group without selector.
func Selector(group *fleet.ClusterGroup) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(group.Spec.Selector)
	if err != nil {
		return labels.Nothing(), fault.New(fault.Stalled, "InvalidSelector", "spec.selector: %w", err)
	}
	return selector, nil
}

// GroupStatus returns the status of a group with these members; problem is what is wrong with the group
// itself, nil for nothing. The order of the members does not matter.
func GroupStatus(group *fleet.ClusterGroup, members []fleet.Cluster, problem error, now time.Time) fleet.ClusterGroupStatus {
	members = slices.SortedFunc(slices.Values(members), func(a, b fleet.Cluster) int { return strings.Compare(a.Name, b.Name) })
	status := fleet.ClusterGroupStatus{
		ClusterCount: len(members),
		Conditions:   slices.Clone(group.Status.Conditions),
	}
	var notReady []string
	for i := range members {
		member := &members[i]
		addSummary(&status.Summary, &member.Status.Summary)
		addCounts(&status.ResourceCounts, &member.Status.ResourceCounts)
		if !memberReady(member) {
			notReady = append(notReady, member.Name)
		}
	}
	status.NonReadyClusterCount = len(notReady)
	status.NonReadyClusters = notReady[:min(len(notReady), maxNamed)]
	status.Summary.NonReadyResources = worstNamed(status.Summary.NonReadyResources)
	status.Display = groupDisplay(&status)
	processed, ready := groupConditions(&status, problem)
	summary.Set(&status.Conditions, processed, now)
	summary.Set(&status.Conditions, ready, now)
	return status
}

// memberReady says that an agent answers and that everything it should deploy is ready.
func memberReady(member *fleet.Cluster) bool {
	return member.Status.Phase == fleet.ClusterReady && member.Status.Summary.Ready == member.Status.Summary.DesiredReady
}

func groupDisplay(status *fleet.ClusterGroupStatus) fleet.ClusterGroupDisplay {
	display := fleet.ClusterGroupDisplay{
		ReadyClusters: fmt.Sprintf("%d/%d", status.ClusterCount-status.NonReadyClusterCount, status.ClusterCount),
		ReadyBundles:  fmt.Sprintf("%d/%d", status.Summary.Ready, status.Summary.DesiredReady),
	}
	if len(status.NonReadyClusters) > 0 {
		display.ReadyClusters += " (" + strings.Join(status.NonReadyClusters, ",") + ")"
	}
	if worst := summary.WorstOf(&status.Summary); worst != fleet.Ready {
		display.State = string(worst)
	}
	return display
}

func groupConditions(status *fleet.ClusterGroupStatus, problem error) (processed, ready fleet.Condition) {
	if problem != nil {
		reason := fault.ReasonOf(problem)
		return condition(fleet.ConditionProcessed, false, reason, problem.Error()),
			condition(fleet.ConditionReady, false, reason, problem.Error())
	}
	processed = condition(fleet.ConditionProcessed, true, "", "")
	var parts []string
	if message := summary.Message(&status.Summary, "Bundle"); message != "" {
		parts = append(parts, message)
	}
	if n := status.NonReadyClusterCount; n > 0 && len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("NotReady(%d) [Cluster %s]", n, strings.Join(status.NonReadyClusters, ", ")))
	}
	if len(parts) > 0 {
		return processed, condition(fleet.ConditionReady, false, "", strings.Join(parts, "; "))
	}
	return processed, condition(fleet.ConditionReady, true, "", "")
}

// worstNamed keeps the worst of the named deployments, in an order that does not depend on theirs.
func worstNamed(resources []fleet.NonReadyResource) []fleet.NonReadyResource {
	slices.SortStableFunc(resources, func(a, b fleet.NonReadyResource) int {
		return cmp.Or(cmp.Compare(b.State.Rank(), a.State.Rank()), strings.Compare(a.Name, b.Name))
	})
	return resources[:min(len(resources), maxNamed)]
}

func addSummary(sum, part *fleet.BundleSummary) {
	for _, state := range states {
		summary.Count(sum, state, summary.CountOf(part, state))
	}
	sum.DesiredReady += part.DesiredReady
	sum.NonReadyResources = append(sum.NonReadyResources, part.NonReadyResources...)
}

var states = []fleet.BundleState{
	fleet.Ready, fleet.NotReady, fleet.Pending, fleet.OutOfSync, fleet.Modified, fleet.WaitApplied, fleet.ErrApplied,
}

func addCounts(sum, part *fleet.ResourceCounts) {
	sum.Ready += part.Ready
	sum.DesiredReady += part.DesiredReady
	sum.WaitApplied += part.WaitApplied
	sum.Modified += part.Modified
	sum.Orphaned += part.Orphaned
	sum.Missing += part.Missing
	sum.Unknown += part.Unknown
	sum.NotReady += part.NotReady
}
