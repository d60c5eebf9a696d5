// Package statustest makes deployments with reports of every kind, for tests of what is counted and told of them.
//
// Start reading with Deployment.
package statustest

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// States are those in which Deployment makes deployments.
func States() []fleet.BundleState {
	return []fleet.BundleState{fleet.Ready, fleet.NotReady, fleet.OutOfSync, fleet.Modified, fleet.WaitApplied, fleet.ErrApplied}
}

// Deployment makes a deployment in a state, with objects.
func Deployment(bundle, cluster string, state fleet.BundleState) *fleet.BundleDeployment {
	bd := &fleet.BundleDeployment{}
	bd.Namespace, bd.Name = "cluster-"+cluster, bundle
	bd.Labels = map[string]string{
		fleet.BundleNamespaceLabel: "ws", fleet.BundleLabel: bundle, fleet.RepoLabel: "repo",
		fleet.ClusterNamespaceLabel: "ws", fleet.ClusterLabel: cluster,
	}
	bd.Spec.DeploymentID, bd.Spec.StagedDeploymentID = "s-1:a", "s-1:a"
	bd.Status = fleet.BundleDeploymentStatus{DeploymentPartStatus: fleet.DeploymentPartStatus{
		AppliedDeploymentID: "s-1:a", Ready: true, NonModified: true,
		Resources: []fleet.BundleDeploymentResource{
			{APIVersion: "v1", Kind: "ConfigMap", Namespace: "app", Name: bundle + "-config"},
			{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "app", Name: bundle},
			{APIVersion: "v1", Kind: "Namespace", Name: "app"},
		},
		ResourceCounts: fleet.ResourceCounts{DesiredReady: 3, Ready: 3},
	}}
	switch state {
	case fleet.ErrApplied:
		bd.Status.AppliedDeploymentID = "s-0:a"
		bd.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: "chart of " + bundle + " does not render"}}
	case fleet.WaitApplied:
		bd.Status.AppliedDeploymentID = "s-0:a"
	case fleet.NotReady:
		bd.Status.Ready = false
		bd.Status.ResourceCounts = fleet.ResourceCounts{DesiredReady: 3, Ready: 2, NotReady: 1}
		bd.Status.NonReadyStatus = []fleet.NonReadyStatus{{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "app", Name: bundle, Summary: fleet.ObjectSummary{State: "in-progress", Transitioning: true, Message: []string{"0 of 1 ready"}}}}
	case fleet.OutOfSync:
		bd.Spec.StagedDeploymentID = "s-2:a"
	case fleet.Modified:
		bd.Status.NonModified = false
		bd.Status.ModifiedStatus = []fleet.ModifiedStatus{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "app", Name: bundle + "-config", Patch: `{"data":{"a":"b"}}`}}
	}
	return bd
}

// Failing makes the worst deployment an agent can report: everything long and different everywhere.
func Failing(bundle, cluster string, objects int) *fleet.BundleDeployment {
	bd := Deployment(bundle, cluster, fleet.NotReady)
	bd.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionMonitored, Status: corev1.ConditionFalse, Message: cluster + strings.Repeat(" trouble", 500)}}
	bd.Status.Resources, bd.Status.NonReadyStatus, bd.Status.ModifiedStatus = nil, nil, nil
	for i := range objects {
		name := fmt.Sprintf("%s-object-with-quite-a-long-name-%d", bundle, i)
		bd.Status.Resources = append(bd.Status.Resources, fleet.BundleDeploymentResource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "namespace-of-" + bundle, Name: name})
		if i < 10 {
			bd.Status.NonReadyStatus = append(bd.Status.NonReadyStatus, fleet.NonReadyStatus{UID: cluster + name, APIVersion: "apps/v1", Kind: "Deployment", Namespace: "namespace-of-" + bundle, Name: name,
				Summary: fleet.ObjectSummary{State: "in-progress", Transitioning: true, Message: []string{cluster + strings.Repeat(" waits", 300)}}})
			bd.Status.ModifiedStatus = append(bd.Status.ModifiedStatus, fleet.ModifiedStatus{APIVersion: "v1", Kind: "ConfigMap", Namespace: "namespace-of-" + bundle, Name: name, Patch: `{"x":"` + cluster + strings.Repeat("y", 3000) + `"}`})
		}
	}
	return bd
}

// Hostile is a report that is as large and as wrong as can be.
func Hostile(bundle, cluster string) *fleet.BundleDeployment {
	long := strings.Repeat("<", 160_000) // six bytes each in JSON
	bd := &fleet.BundleDeployment{}
	bd.Labels = map[string]string{
		fleet.BundleNamespaceLabel: "ws", fleet.BundleLabel: bundle,
		fleet.ClusterNamespaceLabel: "ws", fleet.ClusterLabel: cluster, fleet.RepoLabel: "repo",
	}
	bd.Spec.DeploymentID, bd.Spec.StagedDeploymentID = "s-1:o", "s-1:o"
	s := &bd.Status
	s.AppliedDeploymentID, s.Release, s.Display.State, s.Display.Deployed = long, long, long, long
	s.ResourceCounts = fleet.ResourceCounts{Ready: -1 << 60, DesiredReady: 1 << 62, NotReady: -5}
	for _, kind := range []string{fleet.ConditionDeployed, fleet.ConditionInstalled, fleet.ConditionMonitored, long} {
		s.Conditions = append(s.Conditions, fleet.Condition{Type: kind, Status: corev1.ConditionFalse, Reason: fleet.ReasonError, Message: long})
	}
	for range 100 {
		s.ModifiedStatus = append(s.ModifiedStatus, fleet.ModifiedStatus{Kind: long, APIVersion: long, Namespace: long, Name: long, Patch: long})
		s.NonReadyStatus = append(s.NonReadyStatus, fleet.NonReadyStatus{UID: long, Kind: long, APIVersion: long, Namespace: long, Name: long,
			Summary: fleet.ObjectSummary{State: long, Error: true, Message: []string{long, long}}})
		s.Resources = append(s.Resources, fleet.BundleDeploymentResource{Kind: long, APIVersion: long, Namespace: long, Name: long})
	}
	return bd
}
