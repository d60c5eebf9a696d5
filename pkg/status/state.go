package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Of returns the state of a deployment. The first that holds counts: what is wanted is not applied
// (ErrApplied when the agent reports a failure of just that, else WaitApplied), nothing was let through yet (OutOfSync),
// not ready, something newer is staged (OutOfSync), modified, ready.
func Of(bd *fleet.BundleDeployment) fleet.BundleState {
	switch {
	case bd.Status.AppliedDeploymentID != bd.Spec.DeploymentID:
		if deployed := Find(bd.Status.Conditions, fleet.ConditionDeployed); deployed != nil && deployed.Status == corev1.ConditionFalse && current(bd) {
			return fleet.ErrApplied
		}
		return fleet.WaitApplied
	case bd.Spec.DeploymentID == "":
		return fleet.OutOfSync
	case !bd.Status.Ready:
		return fleet.NotReady
	case bd.Spec.DeploymentID != bd.Spec.StagedDeploymentID:
		return fleet.OutOfSync
	case !bd.Status.NonModified:
		return fleet.Modified
	}
	return fleet.Ready
}

// current says that the conditions are about what is wanted now, as far as the agent tells: right after a
// change they are still about what was wanted before.
func current(bd *fleet.BundleDeployment) bool {
	return bd.Status.AckedDeploymentID == "" || bd.Status.AckedDeploymentID == bd.Spec.DeploymentID
}

// MessageOf returns the message that explains the state, from the conditions in the order Deployed,
// Installed (only about what is wanted now) and Monitored; "" when they are all fine.
func MessageOf(bd *fleet.BundleDeployment) string {
	types := []string{fleet.ConditionDeployed, fleet.ConditionInstalled, fleet.ConditionMonitored}
	switch {
	case !current(bd):
		return ""
	case bd.Status.AppliedDeploymentID != bd.Spec.DeploymentID:
		types = []string{fleet.ConditionDeployed, fleet.ConditionMonitored}
	}
	for _, kind := range types {
		if c := Find(bd.Status.Conditions, kind); c != nil && c.Status != corev1.ConditionTrue && c.Message != "" {
			return c.Message
		}
	}
	return ""
}

// Display returns the words shown for a deployment. Unlike other kinds it names the state Ready.
func Display(bd *fleet.BundleDeployment) fleet.BundleDeploymentDisplay {
	return fleet.BundleDeploymentDisplay{
		Deployed:  word(bd.Status.Conditions, fleet.ConditionDeployed),
		Monitored: word(bd.Status.Conditions, fleet.ConditionMonitored),
		State:     string(Of(bd)),
	}
}

func word(conditions []fleet.Condition, kind string) string {
	condition := Find(conditions, kind)
	switch {
	case condition == nil:
		return ""
	case condition.Reason == fleet.ReasonError:
		return "Error: " + condition.Message
	}
	return string(condition.Status)
}

// Count adds n deployments of a state to a summary; desiredReady is left alone.
func Count(summary *fleet.BundleSummary, state fleet.BundleState, n int) {
	switch state {
	case fleet.Ready:
		summary.Ready += n
	case fleet.NotReady:
		summary.NotReady += n
	case fleet.Pending:
		summary.Pending += n
	case fleet.OutOfSync:
		summary.OutOfSync += n
	case fleet.Modified:
		summary.Modified += n
	case fleet.WaitApplied:
		summary.WaitApplied += n
	case fleet.ErrApplied:
		summary.ErrApplied += n
	}
}

// worst lists the states that are not Ready, worst first.
var worst = []fleet.BundleState{
	fleet.ErrApplied, fleet.WaitApplied, fleet.Modified, fleet.OutOfSync, fleet.Pending, fleet.NotReady,
}

// CountOf returns how many deployments of a state a summary counts.
func CountOf(summary *fleet.BundleSummary, state fleet.BundleState) int {
	switch state {
	case fleet.Ready:
		return summary.Ready
	case fleet.NotReady:
		return summary.NotReady
	case fleet.Pending:
		return summary.Pending
	case fleet.OutOfSync:
		return summary.OutOfSync
	case fleet.Modified:
		return summary.Modified
	case fleet.WaitApplied:
		return summary.WaitApplied
	case fleet.ErrApplied:
		return summary.ErrApplied
	}
	return 0
}

// CountAll adds what another summary counts to a summary, by state; desiredReady is left alone.
func CountAll(summary, other *fleet.BundleSummary) {
	for _, state := range append([]fleet.BundleState{fleet.Ready}, worst...) {
		Count(summary, state, CountOf(other, state))
	}
}

// WorstOf returns the worst state a summary counts; Ready when it counts nothing else.
func WorstOf(summary *fleet.BundleSummary) fleet.BundleState {
	for _, state := range worst {
		if CountOf(summary, state) > 0 {
			return state
		}
	}
	return fleet.Ready
}

// ReadyOf returns "ready/desired" of a summary.
func ReadyOf(summary *fleet.BundleSummary) string {
	return fmt.Sprintf("%d/%d", summary.Ready, summary.DesiredReady)
}

// detailsShown bounds the objects named after a deployment in a message.
const detailsShown = 4

// Message returns what the Ready condition of a parent says: for each state that is not Ready
// "State(count) [Kind name: message]" with the first deployment in that state, and some of its objects; the
// parts sorted and joined by "; ". "" means that everything is ready. Kind is "Cluster" on a Bundle, "Bundle"
// elsewhere. Rancher's dashboard reads this form.
func Message(summary *fleet.BundleSummary, kind string) string {
	var parts []string
	for _, state := range worst {
		count := CountOf(summary, state)
		if count == 0 {
			continue
		}
		part := string(state) + "(" + strconv.Itoa(count) + ")"
		for i := range summary.NonReadyResources {
			resource := &summary.NonReadyResources[i]
			if resource.State != state {
				continue
			}
			part += " [" + kind + " " + resource.Name + suffix(": ", resource.Message) + "]"
			parts = append(parts, objectMessages(resource)...)
			break
		}
		parts = append(parts, part)
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

func objectMessages(resource *fleet.NonReadyResource) []string {
	var parts []string
	for _, object := range resource.ModifiedStatus[:min(len(resource.ModifiedStatus), detailsShown)] {
		parts = append(parts, ModifiedMessage(object))
	}
	for _, object := range resource.NonReadyStatus[:min(len(resource.NonReadyStatus), detailsShown)] {
		parts = append(parts, NonReadyMessage(object))
	}
	return parts
}

// ModifiedMessage describes an object that differs from what was applied.
func ModifiedMessage(object fleet.ModifiedStatus) string {
	name := objectName(object.Kind, object.APIVersion, object.Namespace, object.Name)
	switch {
	case object.Create && object.Exist:
		return name + " is not owned by us"
	case object.Create:
		return name + " missing"
	case object.Delete:
		return name + " extra"
	}
	return name + " modified" + suffix(" ", object.Patch)
}

// NonReadyMessage describes an object that is not ready.
func NonReadyMessage(object fleet.NonReadyStatus) string {
	return objectName(object.Kind, object.APIVersion, object.Namespace, object.Name) + suffix(" ", summaryWords(object.Summary))
}

func summaryWords(summary fleet.ObjectSummary) string {
	if !summary.Error && !summary.Transitioning {
		return summary.State
	}
	var marks []string
	if summary.Transitioning {
		marks = append(marks, "progressing")
	}
	if summary.Error {
		marks = append(marks, "error")
	}
	return "[" + strings.Join(marks, ",") + "]" + suffix(" ", strings.Join(summary.Message, ", "))
}

// objectName returns "kind.group namespace/name", without the group for the core group.
func objectName(kind, apiVersion, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return ResourceType(kind, apiVersion, false) + " " + name
}

// ResourceType joins kind and group: "deployment.apps", or the other way round as dashboards have it.
func ResourceType(kind, apiVersion string, groupFirst bool) string {
	kind = strings.ToLower(kind)
	group, _, hasGroup := strings.Cut(apiVersion, "/")
	switch {
	case !hasGroup:
		return kind
	case groupFirst:
		return group + "." + kind
	}
	return kind + "." + group
}

func suffix(separator, text string) string {
	if text == "" {
		return ""
	}
	return separator + text
}
