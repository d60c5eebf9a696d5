package depends

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

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
		if ref.Name == "" && ref.Selector == nil {
			continue // means nothing
		}
		matched, name, err := matching(ref, deployment, all)
		if err != nil {
			return err
		}
		if len(matched) == 0 {
			waits = append(waits, name+": not on this cluster")
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

// matching returns the deployments a reference means, and words for it.
func matching(ref fleet.BundleRef, dependent *fleet.BundleDeployment, all []*fleet.BundleDeployment) ([]*fleet.BundleDeployment, string, error) {
	selector := labels.Everything()
	words := "bundle " + ref.Name
	if ref.Selector != nil {
		parsed, err := metav1.LabelSelectorAsSelector(ref.Selector)
		if err != nil {
			return nil, "", fault.New(fault.Stalled, "InvalidSelector", "dependsOn: %w", err)
		}
		selector = parsed
		words = strings.TrimSpace("bundles " + parsed.String() + " " + ref.Name)
	}
	namespace := dependent.Labels[fleet.BundleNamespaceLabel]
	var matched []*fleet.BundleDeployment
	for _, other := range all {
		named := ref.Name == "" || other.Labels[fleet.BundleLabel] == ref.Name && other.Labels[fleet.BundleNamespaceLabel] == namespace
		if named && other.Name != dependent.Name && selector.Matches(labels.Set(other.Labels)) {
			matched = append(matched, other)
		}
	}
	return matched, words, nil
}

// findCycle returns the names on a way from the deployment back to itself, or nothing.
func findCycle(from *fleet.BundleDeployment, all []*fleet.BundleDeployment) []string {
	visited := map[string]bool{}
	var walk func(current *fleet.BundleDeployment, way []string) []string
	walk = func(current *fleet.BundleDeployment, way []string) []string {
		way = append(slices.Clone(way), current.Name)
		for _, ref := range current.Spec.DependsOn {
			if ref.Name == "" && ref.Selector == nil {
				continue
			}
			matched, _, err := matching(ref, current, all)
			if err != nil {
				continue
			}
			for _, next := range matched {
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
