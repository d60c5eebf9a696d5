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
)

// bound cuts what does not fit and says so. Conditions are bounded when they are set.
func bound(wanted *fleet.BundleDeploymentStatus) {
	budget := maxStatus
	for _, text := range []*string{&wanted.Display.Deployed, &wanted.Display.Monitored} {
		*text = status.Cut(*text, maxDisplay)
		budget -= len(*text)
	}
	for i := range wanted.Conditions {
		budget -= len(wanted.Conditions[i].Message) + 2*overhead
	}
	for i := range wanted.ModifiedStatus {
		modified := &wanted.ModifiedStatus[i]
		modified.Patch = status.Cut(modified.Patch, maxText)
		budget -= len(modified.Patch) + len(modified.Namespace) + len(modified.Name) + 2*overhead
	}
	for i := range wanted.NonReadyStatus {
		object := &wanted.NonReadyStatus[i]
		messages := make([]string, 0, maxTexts)
		for _, message := range object.Summary.Message[:min(len(object.Summary.Message), maxTexts)] {
			messages = append(messages, status.Cut(message, maxText))
			budget -= maxText
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
