package parent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Merged says how far a bundle's deployments are merged with those of others.
type Merged struct {
	// Reason why none is, or empty.
	Reason string
	// Of deployments that exist so many are merged.
	Merged, Of int
	// Old are clusters whose agents do not understand it, and Large those for which the bundle is too large.
	Old, Large []string
}

// shownNames bounds the clusters named in a message.
const shownNames = 3

// setMerged tells in a condition whether a bundle is merged everywhere, and why not.
func setMerged(conditions *[]fleet.Condition, merged *Merged, now time.Time) {
	if merged == nil {
		*conditions = slices.DeleteFunc(*conditions, func(c fleet.Condition) bool { return c.Type == fleet.ConditionMerged })
		return
	}
	condition := fleet.Condition{Type: fleet.ConditionMerged, Status: corev1.ConditionTrue}
	var problems []string
	if merged.Reason != "" {
		problems = append(problems, merged.Reason)
	}
	if len(merged.Old) > 0 {
		problems = append(problems, "agents that do not understand it: "+some(merged.Old))
	}
	if len(merged.Large) > 0 {
		problems = append(problems, "options larger than spec.merge.maxBytes: "+some(merged.Large))
	}
	switch moving := merged.Of - merged.Merged - len(merged.Old) - len(merged.Large); {
	case len(problems) > 0:
		condition.Status, condition.Reason = corev1.ConditionFalse, "DeliveredAlone"
		condition.Message = fmt.Sprintf("%d of %d deployments are merged; %s", merged.Merged, merged.Of, strings.Join(problems, "; "))
	case moving > 0:
		condition.Status, condition.Reason = corev1.ConditionUnknown, "Moving"
		condition.Message = "deployments are being moved to merged objects, or wait for their agents"
	}
	status.Set(conditions, condition, now)
}

// some names a few of many.
func some(names []string) string {
	slices.Sort(names)
	if len(names) <= shownNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:shownNames], ", "), len(names)-shownNames)
}
