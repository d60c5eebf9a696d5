package cause

import (
	"slices"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/depends"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Chain leads from a thing to the first cause.
type Chain struct {
	// Steps start with the thing asked about; the last one is the cause. Their Children are left out.
	Steps []Item `json:"steps"`
	// Others counts, for each step, its siblings that are not ready either.
	Others []int `json:"others"`
}

// IsReady says that the thing asked about is fine.
func (c Chain) IsReady() bool { return len(c.Steps) > 0 && c.Steps[0].IsReady() }

// Why returns the way from a thing to the first cause of its state; false when the world does not hold the
// thing. For one that is ready the chain has one step.
func (g *Graph) Why(kind Kind, namespace, name string) (Chain, bool) {
	id := ref{kind, namespace, name}
	if _, ok := g.item(id); !ok {
		return Chain{}, false
	}
	walk := &walk{graph: g, seen: map[ref]bool{}}
	walk.follow(id, 0)
	return walk.chain, true
}

type walk struct {
	graph *Graph
	chain Chain
	seen  map[ref]bool
}

// follow adds a thing and goes on to what is behind it.
func (w *walk) follow(id ref, others int) {
	item, ok := w.graph.item(id)
	if !ok || w.seen[id] {
		return
	}
	w.seen[id] = true
	w.add(item, others)
	if item.IsReady() || item.State == Failed && item.Message != "" {
		return
	}
	if id.kind == Deployment {
		if bd := w.graph.deployments[id]; bd != nil && !w.graph.isHeld(bd) {
			w.behindDeployment(id)
		}
		return
	}
	if item.State == Offline {
		return
	}
	w.followWorst(w.graph.below[id])
}

func (g *Graph) isHeld(bd *fleet.BundleDeployment) bool {
	_, held := g.held[heldKeyOf(bd)]
	return held
}

func (w *walk) add(item Item, others int) {
	w.chain.Steps = append(w.chain.Steps, item)
	w.chain.Others = append(w.chain.Others, others)
}

// place tells the items below one thing apart.
type place struct {
	kind                     Kind
	namespace, name, cluster string
}

func placeOf(item Item) place { return place{item.Kind, item.Namespace, item.Name, item.Cluster} }

func (w *walk) followWorst(ids []ref) {
	var items []Item
	refs := map[place]ref{}
	for _, id := range ids {
		if item, ok := w.graph.item(id); ok && !item.IsReady() {
			items = append(items, item)
			refs[placeOf(item)] = id
		}
	}
	if len(items) == 0 {
		return
	}
	worstFirst(items)
	w.follow(refs[placeOf(items[0])], len(items)-1)
}

func (w *walk) behindDeployment(id ref) {
	bd := w.graph.deployments[id]
	if on := clusterOf(bd); w.graph.clusters[on] != nil && offline(w.graph.clusters[on]) {
		w.follow(on, 0)
		return
	}
	// What is not applied has no objects to speak of: they are those of the version before.
	if status.Of(bd).Rank() >= fleet.WaitApplied.Rank() {
		w.followWorst(w.graph.unmet(bd))
		return
	}
	if objects := objectsOf(bd); len(objects) > 0 {
		w.add(objects[0], len(objects)-1)
	}
}

// unmet returns the deployments on the same cluster that a deployment waits for.
func (g *Graph) unmet(bd *fleet.BundleDeployment) []ref {
	var ids []ref
	for _, dependency := range bd.Spec.DependsOn {
		reference, err := depends.Read(dependency, bd.Labels[fleet.BundleNamespaceLabel])
		if err != nil {
			continue
		}
		for i := range g.world.Deployments {
			other := &g.world.Deployments[i]
			if other.Namespace == bd.Namespace && other.Name != bd.Name && reference.Means(other.Labels) && !accepted(dependency, other) {
				ids = append(ids, ref{Deployment, other.Namespace, other.Name})
			}
		}
	}
	return ids
}

func accepted(dependency fleet.BundleRef, bd *fleet.BundleDeployment) bool {
	state := status.Of(bd)
	if len(dependency.AcceptedStates) == 0 {
		return state == fleet.Ready
	}
	return slices.Contains(dependency.AcceptedStates, state)
}
