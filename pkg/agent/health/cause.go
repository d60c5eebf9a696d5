package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// maxCauses bounds the causes of one object.
const maxCauses = 2

// workloads run pods that their spec.selector means.
var workloads = map[schema.GroupKind]bool{
	{Group: "apps", Kind: "Deployment"}: true, {Group: "apps", Kind: "StatefulSet"}: true,
	{Group: "apps", Kind: "DaemonSet"}: true, {Group: "apps", Kind: "ReplicaSet"}: true, job: true,
}

// early are the reasons for which every container waits for a moment.
var early = []string{"", "ContainerCreating", "PodInitializing"}

// RunsPods says whether an object is a workload whose pods tell why it is not ready.
func RunsPods(object *unstructured.Unstructured) bool {
	return workloads[object.GroupVersionKind().GroupKind()]
}

// Causes returns why a workload that is not ready does not run: what its pods wait for, or else the last warning
// about it. The words stay the same while the cause does: they name no pod and count nothing.
func Causes(workload *unstructured.Unstructured, pods, events []*unstructured.Unstructured) []string {
	var causes []string
	for _, pod := range pods {
		if pod.GetDeletionTimestamp() == nil {
			causes = append(causes, podCauses(pod)...)
		}
	}
	if len(causes) == 0 {
		causes = lastWarning(workload, pods, events)
	}
	slices.Sort(causes)
	causes = slices.Compact(causes)
	return causes[:min(len(causes), maxCauses)]
}

// Explain puts causes before what else is known of an object that is not ready.
func Explain(told *fleet.ObjectSummary, causes []string) {
	if len(causes) == 0 {
		return
	}
	told.Message = append(slices.Clone(causes), told.Message...)
	*told = bounded(*told)
}

func podCauses(pod *unstructured.Unstructured) []string {
	var causes []string
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["type"] == "PodScheduled" && fields["status"] == "False" && fields["reason"] == "Unschedulable" {
			causes = append(causes, says("Unschedulable", text(fields, "message")))
		}
	}
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", list)
		for _, status := range statuses {
			fields, _ := status.(map[string]any)
			if cause := containerCause(fields); cause != "" {
				causes = append(causes, "container "+text(fields, "name")+": "+cause)
			}
		}
	}
	if len(causes) == 0 && text(pod.Object, "status", "phase") == "Failed" {
		causes = append(causes, says(cmp.Or(text(pod.Object, "status", "reason"), "Failed"), text(pod.Object, "status", "message")))
	}
	return causes
}

// containerCause puts the words of one container's trouble so that they do not change with every attempt: a pull
// that fails and the pause after it are one, and so are a crash, the pause after it and the next start.
func containerCause(fields map[string]any) string {
	ready, _, _ := unstructured.NestedBool(fields, "ready")
	reason := text(fields, "state", "waiting", "reason")
	switch {
	case ready:
		return ""
	case reason == "ErrImagePull" || reason == "ImagePullBackOff":
		return says("ImagePullBackOff", fmt.Sprintf("image %q", text(fields, "image")))
	case reason == "CrashLoopBackOff":
		return says(reason, exit(fields, "lastState"))
	case !slices.Contains(early, reason):
		return says(reason, text(fields, "state", "waiting", "message"))
	}
	for _, state := range []string{"state", "lastState"} {
		if how := exit(fields, state); how != "" {
			return says("CrashLoopBackOff", how)
		}
	}
	return ""
}

// exit tells how a container ended; "" when it did not, or well.
func exit(fields map[string]any, state string) string {
	code, found, _ := unstructured.NestedInt64(fields, state, "terminated", "exitCode")
	if !found || code == 0 {
		return ""
	}
	how := fmt.Sprintf("exit code %d", code)
	if reason := text(fields, state, "terminated", "reason"); reason != "" && reason != "Error" {
		how += " (" + reason + ")"
	}
	return how
}

// lastWarning returns the newest warning about the workload, its pods or what stands between them.
func lastWarning(workload *unstructured.Unstructured, pods, events []*unstructured.Unstructured) []string {
	ids := map[string]bool{string(workload.GetUID()): true}
	for _, pod := range pods {
		ids[string(pod.GetUID())] = true
	}
	var newest *unstructured.Unstructured
	for _, event := range events {
		name := text(event.Object, "involvedObject", "name")
		between := text(event.Object, "involvedObject", "kind") == "ReplicaSet" && strings.HasPrefix(name, workload.GetName()+"-")
		if text(event.Object, "type") != "Warning" || !between && !ids[text(event.Object, "involvedObject", "uid")] {
			continue
		}
		if newest == nil || when(event) > when(newest) {
			newest = event
		}
	}
	if newest == nil {
		return nil
	}
	return []string{says(text(newest.Object, "reason"), text(newest.Object, "message"))}
}

// when returns the last time of an event, in a form that sorts.
func when(event *unstructured.Unstructured) string {
	return max(text(event.Object, "lastTimestamp"), text(event.Object, "series", "lastObservedTime"), text(event.Object, "eventTime"))
}

func says(reason, message string) string {
	if message == "" {
		return reason
	}
	return reason + ": " + message
}

func text(fields map[string]any, path ...string) string {
	found, _, _ := unstructured.NestedString(fields, path...)
	return found
}
