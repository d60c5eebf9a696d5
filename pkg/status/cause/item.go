package cause

import (
	"cmp"
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Kind of an item.
type Kind string

// The kinds.
const (
	GitRepo    Kind = "GitRepo"
	HelmOp     Kind = "HelmOp"
	Bundle     Kind = "Bundle"
	Deployment Kind = "BundleDeployment"
	Cluster    Kind = "Cluster"
	Group      Kind = "ClusterGroup"
	// Object is a Kubernetes object on a member.
	Object Kind = "Object"
)

// States beside those of deployments.
const (
	// Failed is the state of a source or bundle that is wrong itself, whatever its deployments do.
	Failed fleet.BundleState = "Failed"
	// Offline is the state of a cluster that is not heard from.
	Offline fleet.BundleState = "Offline"
)

// Item is one thing and how it does.
type Item struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Cluster is "namespace/name" of a deployment's destination.
	Cluster string            `json:"cluster,omitempty"`
	State   fleet.BundleState `json:"state"`
	// Message says what is wrong with the thing itself; empty when it only suffers from what is below it.
	Message string `json:"message,omitempty"`
	// ComparePatch is the entry for diff.comparePatches that would except how an object differs.
	ComparePatch *fleet.ComparePatch `json:"comparePatch,omitempty"`
	// Children are what the thing consists of, worst first.
	Children []Item `json:"children,omitempty"`
}

// IsReady says that there is nothing wrong.
func (i Item) IsReady() bool { return i.State == fleet.Ready }

// rank orders states from fine to worst.
func rank(state fleet.BundleState) int {
	switch state {
	case Failed:
		return 9
	case Offline:
		return 8
	}
	return state.Rank()
}

func worstFirst(items []Item) {
	slices.SortStableFunc(items, func(a, b Item) int {
		return cmp.Or(
			cmp.Compare(rank(b.State), rank(a.State)),
			strings.Compare(a.Name, b.Name), strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Namespace, b.Namespace),
		)
	})
}
