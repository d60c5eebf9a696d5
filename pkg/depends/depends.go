package depends

import (
	"fmt"
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Reasons of the errors.
const (
	ReasonWaiting = "WaitingForDependency"
	ReasonCycle   = "DependencyCycle"
)

// Check returns nil when a deployment may be deployed, given all deployments of its cluster. Else it
// returns an error of class Waiting that names what is not in an accepted state, or one of class Stalled
// when the deployment waits for itself.
func Check(deployment *fleet.BundleDeployment, all []*fleet.BundleDeployment) error {
	if len(deployment.Spec.DependsOn) == 0 {
		return nil
	}
	if cycle := findCycle(deployment, all); len(cycle) > 0 {
		return fault.New(fault.Stalled, ReasonCycle, "dependsOn goes in a circle: %s", strings.Join(cycle, " → "))
	}
	var waits []string
	for _, ref := range deployment.Spec.DependsOn {
		reference, err := Read(ref, deployment.Labels[fleet.BundleNamespaceLabel])
		if err != nil {
			return err
		}
		matched := matching(reference, deployment, all)
		if len(matched) == 0 && !reference.IsEmpty() {
			waits = append(waits, reference.String()+": not on this cluster")
		}
		accepted := ref.AcceptedStates
		if len(accepted) == 0 {
			accepted = []fleet.BundleState{fleet.Ready}
		}
		for _, other := range matched {
			if state := status.Of(other); !slices.Contains(accepted, state) {
				waits = append(waits, fmt.Sprintf("%s: %s", other.Name, state))
			}
		}
	}
	if len(waits) > 0 {
		return fault.New(fault.Waiting, ReasonWaiting, "waiting for %s", strings.Join(waits, ", "))
	}
	return nil
}

// matching returns the deployments, other than the dependent one, that a reference means.
func matching(reference Reference, dependent *fleet.BundleDeployment, all []*fleet.BundleDeployment) []*fleet.BundleDeployment {
	var matched []*fleet.BundleDeployment
	for _, other := range all {
		if other.Name != dependent.Name && reference.Means(other.Labels) {
			matched = append(matched, other)
		}
	}
	return matched
}

// findCycle returns the names on a way from the deployment back to itself, or nothing.
func findCycle(from *fleet.BundleDeployment, all []*fleet.BundleDeployment) []string {
	visited := map[string]bool{}
	var walk func(current *fleet.BundleDeployment, way []string) []string
	walk = func(current *fleet.BundleDeployment, way []string) []string {
		way = append(slices.Clone(way), current.Name)
		for _, ref := range current.Spec.DependsOn {
			reference, err := Read(ref, current.Labels[fleet.BundleNamespaceLabel])
			if err != nil {
				continue
			}
			for _, next := range matching(reference, current, all) {
				if next.Name == from.Name {
					return append(way, next.Name)
				}
				if visited[next.Name] {
					continue
				}
				visited[next.Name] = true
				if cycle := walk(next, way); len(cycle) > 0 {
					return cycle
				}
			}
		}
		return nil
	}
	return walk(from, nil)
}
