package merge

import fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"

func specOf(part fleet.DeploymentPartSpec) fleet.BundleDeploymentSpec {
	return fleet.BundleDeploymentSpec{
		Paused:                        part.Paused,
		StagedOptions:                 part.StagedOptions,
		StagedDeploymentID:            part.StagedDeploymentID,
		Options:                       part.Options,
		DeploymentID:                  part.DeploymentID,
		DependsOn:                     part.DependsOn,
		CorrectDrift:                  part.CorrectDrift,
		OCIContents:                   part.OCIContents,
		HelmChartOptions:              part.HelmChartOptions,
		ValuesHash:                    part.ValuesHash,
		DownstreamResourcesGeneration: part.DownstreamResourcesGeneration,
		OffSchedule:                   part.OffSchedule,
		WaitingForValues:              part.WaitingForValues,
	}
}

func partSpecOf(spec fleet.BundleDeploymentSpec) fleet.DeploymentPartSpec {
	return fleet.DeploymentPartSpec{
		Paused:                        spec.Paused,
		StagedOptions:                 spec.StagedOptions,
		StagedDeploymentID:            spec.StagedDeploymentID,
		Options:                       spec.Options,
		DeploymentID:                  spec.DeploymentID,
		DependsOn:                     spec.DependsOn,
		CorrectDrift:                  spec.CorrectDrift,
		OCIContents:                   spec.OCIContents,
		HelmChartOptions:              spec.HelmChartOptions,
		ValuesHash:                    spec.ValuesHash,
		DownstreamResourcesGeneration: spec.DownstreamResourcesGeneration,
		OffSchedule:                   spec.OffSchedule,
		WaitingForValues:              spec.WaitingForValues,
	}
}

// StatusOf returns the report of a part as the deployment has it.
func StatusOf(part fleet.DeploymentPartStatus) fleet.BundleDeploymentStatus {
	return fleet.BundleDeploymentStatus{
		Conditions:                    part.Conditions,
		AppliedDeploymentID:           part.AppliedDeploymentID,
		AckedDeploymentID:             part.AckedDeploymentID,
		Release:                       part.Release,
		Ready:                         part.Ready,
		NonModified:                   part.NonModified,
		NonReadyStatus:                part.NonReadyStatus,
		ModifiedStatus:                part.ModifiedStatus,
		ComparePatches:                part.ComparePatches,
		IncompleteState:               part.IncompleteState,
		Display:                       part.Display,
		SyncGeneration:                part.SyncGeneration,
		Resources:                     part.Resources,
		ResourceCounts:                part.ResourceCounts,
		DownstreamResourcesGeneration: part.DownstreamResourcesGeneration,
	}
}

// PartStatusOf returns the report of a deployment as a merged object has it.
func PartStatusOf(status fleet.BundleDeploymentStatus) fleet.DeploymentPartStatus {
	return fleet.DeploymentPartStatus{
		Conditions:                    status.Conditions,
		AppliedDeploymentID:           status.AppliedDeploymentID,
		AckedDeploymentID:             status.AckedDeploymentID,
		Release:                       status.Release,
		Ready:                         status.Ready,
		NonModified:                   status.NonModified,
		NonReadyStatus:                status.NonReadyStatus,
		ModifiedStatus:                status.ModifiedStatus,
		ComparePatches:                status.ComparePatches,
		IncompleteState:               status.IncompleteState,
		Display:                       status.Display,
		SyncGeneration:                status.SyncGeneration,
		Resources:                     status.Resources,
		ResourceCounts:                status.ResourceCounts,
		DownstreamResourcesGeneration: status.DownstreamResourcesGeneration,
	}
}
