package cluster

import (
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
