package report

import (
	"fmt"
	"time"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Merged returns what is told of an object that carries several deployments: how many of them are deployed and as
// they should be, the worst state, and the first that is not ready. Conditions are those it has.
func Merged(carried []*fleet.BundleDeployment, conditions []fleet.Condition, now time.Time) fleet.BundleDeploymentStatus {
	var told fleet.BundleDeploymentStatus
	var summary fleet.BundleSummary
	deployed, monitored, message := 0, 0, ""
	for _, deployment := range carried {
		state := status.Of(deployment)
		status.Count(&summary, state, 1)
		if deployment.Status.AppliedDeploymentID == deployment.Spec.DeploymentID {
			deployed++
		}
		if deployment.Status.NonModified {
			monitored++
		}
		if state != fleet.Ready && message == "" {
			message = deployment.Name + ": " + string(state)
			if why := status.MessageOf(deployment); why != "" {
				message = deployment.Name + ": " + why
			}
		}
	}
	told.Display = fleet.BundleDeploymentDisplay{
		Deployed:  fmt.Sprintf("%d/%d", deployed, len(carried)),
		Monitored: fmt.Sprintf("%d/%d", monitored, len(carried)),
		State:     string(status.WorstOf(&summary)),
	}
	told.Conditions = append(told.Conditions, conditions...)
	status.SetReady(&told.Conditions, "", message, now)
	return told
}
