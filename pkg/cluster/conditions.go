package cluster

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// condition returns a condition without times. One that holds has no reason: Rancher's pages colour a
// reason whatever the status is.
func condition(kind string, holds bool, reason, message string) fleet.Condition {
	if holds {
		return fleet.Condition{Type: kind, Status: corev1.ConditionTrue, Message: message}
	}
	return fleet.Condition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message}
}

// setCondition returns the conditions with one of them set. Its times move only when it changes.
func setCondition(conditions []fleet.Condition, wanted fleet.Condition, now time.Time) []fleet.Condition {
	wanted.LastUpdateTime = now.UTC().Format(time.RFC3339)
	wanted.LastTransitionTime = wanted.LastUpdateTime
	i := slices.IndexFunc(conditions, func(c fleet.Condition) bool { return c.Type == wanted.Type })
	if i < 0 {
		return append(conditions, wanted)
	}
	stored := conditions[i]
	if stored.Status == wanted.Status {
		wanted.LastTransitionTime = stored.LastTransitionTime
		if stored.Reason == wanted.Reason && stored.Message == wanted.Message {
			return conditions
		}
	}
	conditions[i] = wanted
	return conditions
}
