package report

import (
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// A status is written with every change, once for each cluster, and kept in the memory of the hub: all of it
// stays below 64 KiB of JSON. Counts are right however many objects there are; lists are cut, that of the
// applied objects to what the rest leaves room for.
const (
	maxStatus = 60 << 10
	// overhead is what the JSON of an entry takes beside its texts.
	overhead = 112
	// maxText bounds each text about one object, and maxTexts how many there are of one.
	maxText  = 384
	maxTexts = 3
	// maxDisplay bounds the words shown for a deployment.
	maxDisplay = 1024
	// Where several reports share an object, the budget of one is cut into shares for texts.
	shares    = 12
	leastText = 96
)

// bound cuts what does not fit and says so. Conditions are bounded when they are set, and more where the object is
// shared with others; a budget of 0 is that of an object of its own.
func bound(wanted *fleet.BundleDeploymentStatus, before []fleet.Condition, budget int) {
	text := maxText
	if budget == 0 {
		budget = maxStatus
	} else {
		text = min(maxText, max(leastText, budget/shares))
		shorten(wanted, before, text, min(maxListed, max(1, budget/(shares*overhead))))
	}
	for _, words := range []*string{&wanted.Display.Deployed, &wanted.Display.Monitored} {
		*words = status.Cut(*words, min(maxDisplay, 3*text))
		budget -= len(*words)
	}
	for i := range wanted.Conditions {
		budget -= len(wanted.Conditions[i].Message) + 2*overhead
	}
	for i := range wanted.ModifiedStatus {
		modified := &wanted.ModifiedStatus[i]
		modified.Patch = status.Cut(modified.Patch, text)
		budget -= len(modified.Patch) + len(modified.Namespace) + len(modified.Name) + 2*overhead
	}
	for i := range wanted.NonReadyStatus {
		object := &wanted.NonReadyStatus[i]
		messages := make([]string, 0, maxTexts)
		for _, message := range object.Summary.Message[:min(len(object.Summary.Message), maxTexts)] {
			messages = append(messages, status.Cut(message, text))
			budget -= text
		}
		if object.Summary.Message != nil {
			object.Summary.Message = messages
		}
		budget -= len(object.Namespace) + len(object.Name) + 3*overhead
	}
	for i := range wanted.Resources {
		resource := &wanted.Resources[i]
		budget -= len(resource.Kind) + len(resource.APIVersion) + len(resource.Namespace) + len(resource.Name) + overhead
		if budget < 0 {
			wanted.Resources, wanted.IncompleteState = wanted.Resources[:i:i], true
			break
		}
	}
}

// shorten cuts conditions and lists to what a share of an object has room for. A condition that says no more than it
// did before, when it was cut, stays what it was.
func shorten(wanted *fleet.BundleDeploymentStatus, before []fleet.Condition, text, listed int) {
	for i := range wanted.Conditions {
		condition := &wanted.Conditions[i]
		full := condition.Message
		condition.Message = status.Cut(full, text)
		was := status.Find(before, condition.Type)
		if was != nil && condition.Message != full && was.Status == condition.Status && was.Reason == condition.Reason && was.Message == condition.Message {
			*condition = *was
		}
	}
	if len(wanted.ModifiedStatus) > listed || len(wanted.NonReadyStatus) > listed {
		wanted.IncompleteState = true
	}
	wanted.ModifiedStatus = wanted.ModifiedStatus[:min(listed, len(wanted.ModifiedStatus))]
	wanted.ComparePatches = wanted.ComparePatches[:min(listed, len(wanted.ComparePatches))]
	wanted.NonReadyStatus = wanted.NonReadyStatus[:min(listed, len(wanted.NonReadyStatus))]
}
