package cluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
)

// Selector returns the selector of a group's members: nothing for a group without selector.
func Selector(group *fleet.ClusterGroup) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(group.Spec.Selector)
	if err != nil {
		return labels.Nothing(), fault.New(fault.Stalled, "InvalidSelector", "spec.selector: %w", err)
	}
	return selector, nil
}

// GroupStatus returns the status of a group with these members; problem is what is wrong with the group
// itself, nil for nothing. The order of the members does not matter. A member that was never heard of, or
// is not any more, is not ready whatever its deployments last said.
func GroupStatus(group *fleet.ClusterGroup, members []fleet.Cluster, problem error, now time.Time) fleet.ClusterGroupStatus {
	counted := make([]parent.GroupMember, len(members))
	for i := range members {
		member := &members[i]
		counted[i] = parent.GroupMember{
			Name: member.Name, Rollup: storedRollup(&member.Status), NotReady: member.Status.Phase != fleet.ClusterReady,
		}
	}
	wanted := parent.ClusterGroup(group.Status, counted, now)
	if problem == nil {
		status.Set(&wanted.Conditions, condition(fleet.ConditionProcessed, true, "", ""), now)
		return wanted
	}
	status.Set(&wanted.Conditions, condition(fleet.ConditionProcessed, false, fault.ReasonOf(problem), problem.Error()), now)
	status.SetReady(&wanted.Conditions, fault.ReasonOf(problem), problem.Error(), now)
	return wanted
}
