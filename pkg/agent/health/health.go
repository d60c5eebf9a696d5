package health

import (
	"fmt"
	"slices"

	"github.com/rancher/wrangler/v3/pkg/summary"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// States that are not the object's own words.
const (
	stateActive     = "active"
	stateInProgress = "in-progress"
	stateFailed     = "failed"
	stateRemoving   = "removing"
	stateUnknown    = "unknown"
)

// maxMessages bounds the messages of one object, and maxMessage the bytes of each.
const (
	maxMessages = 4
	maxMessage  = 512
)

var job = schema.GroupKind{Group: "batch", Kind: "Job"}

// Of returns how an object does and whether it is ready. Conditions that match an entry of ignore in
// all its keys and values do not count.
func Of(object *unstructured.Unstructured, ignore *fleet.IgnoreOptions) (fleet.ObjectSummary, bool) {
	object = withoutConditions(object, ignore)
	words := summary.Summarize(object)
	result, err := status.Compute(object)
	if err != nil {
		return bounded(fleet.ObjectSummary{State: stateUnknown, Message: []string{err.Error()}}), false
	}
	switch result.Status {
	case status.CurrentStatus:
		if words.Error && !finishedJob(object) && trusted(object) {
			return tell(words, stateFailed, result.Message), false
		}
		return bounded(fleet.ObjectSummary{State: readyState(words)}), true
	case status.FailedStatus:
		failed := tell(words, stateFailed, result.Message)
		failed.Error = true
		return failed, false
	case status.TerminatingStatus:
		removing := tell(words, stateRemoving, result.Message)
		removing.State, removing.Transitioning = stateRemoving, true
		return removing, false
	case status.InProgressStatus:
		progress := tell(words, stateInProgress, result.Message)
		progress.Transitioning = !progress.Error
		return progress, false
	}
	return bounded(fleet.ObjectSummary{State: stateUnknown, Message: []string{result.Message}}), false
}

// tell takes the words of the summary where it noticed something itself, else the given ones.
func tell(words summary.Summary, state, message string) fleet.ObjectSummary {
	told := fleet.ObjectSummary{State: words.State, Error: words.Error, Transitioning: words.Transitioning, Message: words.Message}
	if !words.Error && !words.Transitioning {
		told.State = state
	}
	if len(told.Message) == 0 && message != "" {
		told.Message = []string{message}
	}
	return bounded(told)
}

func readyState(words summary.Summary) string {
	if words.State == "" || words.Error || words.Transitioning {
		return stateActive
	}
	return words.State
}

// trusted says whether an error the summary sees in an object's conditions counts although the object
// is current: for built-in kinds the conventions are known better, and benign conditions read as
// errors are a nuisance.
func trusted(object *unstructured.Unstructured) bool {
	_, builtIn := builtInGroups[object.GroupVersionKind().Group]
	return !builtIn
}

var builtInGroups = map[string]struct{}{
	"": {}, "apps": {}, "batch": {}, "policy": {}, "autoscaling": {}, "networking.k8s.io": {},
	"rbac.authorization.k8s.io": {}, "storage.k8s.io": {}, "admissionregistration.k8s.io": {},
	"apiextensions.k8s.io": {}, "apiregistration.k8s.io": {}, "scheduling.k8s.io": {},
}

func finishedJob(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == job
}

// With puts the rules of a bundle that an object does not meet over what is known of its kind: an object that is
// ready otherwise is still under way then.
func With(told fleet.ObjectSummary, ready bool, unmet []string) (fleet.ObjectSummary, bool) {
	if len(unmet) == 0 {
		return told, ready
	}
	if ready {
		told = fleet.ObjectSummary{State: stateInProgress, Transitioning: true}
	}
	told.Message = append(slices.Clone(unmet), told.Message...)
	return bounded(told), false
}

// withoutConditions returns the object without the conditions that do not count; the given one stays.
func withoutConditions(object *unstructured.Unstructured, ignore *fleet.IgnoreOptions) *unstructured.Unstructured {
	if ignore == nil || len(ignore.Conditions) == 0 {
		return object
	}
	conditions, found, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil || !found {
		return object
	}
	kept := slices.DeleteFunc(conditions, func(condition any) bool {
		fields, _ := condition.(map[string]any)
		return slices.ContainsFunc(ignore.Conditions, func(entry map[string]string) bool {
			return matches(fields, entry)
		})
	})
	object = object.DeepCopy()
	if err := unstructured.SetNestedSlice(object.Object, kept, "status", "conditions"); err != nil {
		return object
	}
	return object
}

func matches(fields map[string]any, entry map[string]string) bool {
	for key, want := range entry {
		if got, found := fields[key]; !found || fmt.Sprint(got) != want {
			return false
		}
	}
	return len(entry) > 0
}

func bounded(told fleet.ObjectSummary) fleet.ObjectSummary {
	told.Message = slices.Clone(told.Message[:min(len(told.Message), maxMessages)])
	for i, message := range told.Message {
		if len(message) > maxMessage {
			told.Message[i] = message[:maxMessage] + "…"
		}
	}
	return told
}
