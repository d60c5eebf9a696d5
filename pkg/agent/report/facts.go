package report

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// setFacts tells apart what upstream's conditions mix: whether the objects are written, whether they run, whether
// that is under way, and whether something is broken. All four follow from what the status says anyway, so they
// change only with it.
func setFacts(deployment *fleet.BundleDeployment, facts Facts, now time.Time) {
	current := &deployment.Status
	applied := fleet.Condition{Type: fleet.ConditionApplied, Status: corev1.ConditionUnknown}
	if deployed := status.Find(current.Conditions, fleet.ConditionDeployed); deployed != nil {
		applied.Status, applied.Reason, applied.Message = deployed.Status, deployed.Reason, deployed.Message
	}
	counts := current.ResourceCounts
	available := fleet.Condition{Type: fleet.ConditionAvailable, Status: corev1.ConditionTrue}
	switch lacking := counts.Missing + counts.NotReady; {
	case current.Release == "" || counts.Unknown > 0:
		available.Status = corev1.ConditionUnknown
	case lacking > 0:
		available.Status = corev1.ConditionFalse
		available.Message = fmt.Sprintf("%d of %d objects are not ready", lacking, counts.DesiredReady)
	}
	broken := slices.ContainsFunc(current.NonReadyStatus, func(object fleet.NonReadyStatus) bool { return object.Summary.Error })
	moving := slices.ContainsFunc(current.NonReadyStatus, func(object fleet.NonReadyStatus) bool { return object.Summary.Transitioning })
	for _, condition := range []fleet.Condition{
		applied, available,
		{Type: fleet.ConditionProgressing, Status: truth(applied.Status == corev1.ConditionUnknown || moving)},
		{Type: fleet.ConditionDegraded, Status: truth(applied.Status == corev1.ConditionFalse || broken || facts.Correction != nil)},
	} {
		status.Set(&current.Conditions, condition, now)
	}
}

func truth(holds bool) corev1.ConditionStatus {
	if holds {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}
