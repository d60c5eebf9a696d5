package controller

import (
	"context"
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/merge/carrier"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// merging knows where the deployments of a bundle belong.
type merging struct {
	// needed says that some are merged or are to be.
	needed bool
	// place is where they are merged; nil when they are not to be.
	place *merge.Place
	// protocols of the agents, by namespace of their deployments.
	protocols map[string]int
}

func newMerging(bundle *fleet.Bundle, clusters []target.ClusterInfo, current []*fleet.BundleDeployment) merging {
	place, ok, _ := merge.PlaceOf(bundle)
	if !ok && !merge.AnyInMerged(current) {
		return merging{}
	}
	m := merging{needed: true, protocols: make(map[string]int, len(clusters))}
	if ok {
		m.place = &place
	}
	for i := range clusters {
		m.protocols[clusters[i].DeploymentNamespace] = clusters[i].Protocol
	}
	return m
}

// of returns where a deployment belongs; nil stands for an object of its own.
func (m merging) of(deployment *fleet.BundleDeployment) *merge.Place {
	if m.place == nil || !m.understood(deployment) {
		return nil
	}
	if at := merge.Carriers(deployment)[0]; at.IsMerged() && m.place.Has(at.Name) {
		return m.place // it is not moved because it grows
	}
	if size, err := merge.Size(merge.PartOf(deployment)); err != nil || size > m.place.MaxBytes {
		return nil
	}
	return m.place
}

func (m merging) understood(deployment *fleet.BundleDeployment) bool {
	return m.protocols[deployment.Namespace] >= merge.Protocol
}

// moves returns the deployments that stay as they are, but not where they are.
func (m merging) moves(current []*fleet.BundleDeployment, plan target.Plan) []*fleet.BundleDeployment {
	if !m.needed {
		return nil
	}
	busy := map[string]bool{}
	for _, list := range [][]target.Deployment{plan.Create, plan.Update, plan.Delete} {
		for i := range list {
			busy[list[i].Object.Namespace] = true
		}
	}
	var moves []*fleet.BundleDeployment
	for _, deployment := range current {
		_, known := m.protocols[deployment.Namespace]
		if !known || busy[deployment.Namespace] || deployment.DeletionTimestamp != nil {
			continue
		}
		if !carrier.Settled(deployment, m.of(deployment)) {
			moves = append(moves, deployment)
		}
	}
	return moves
}

// move brings a deployment a step to where it belongs.
func (p *pass) move(ctx context.Context, deployment *fleet.BundleDeployment) error {
	place := p.merging.of(deployment)
	err := p.write(place != nil || merge.InMerged(deployment), func() error {
		return p.reconciler.Deployments.Move(ctx, deployment, place)
	})
	if err != nil {
		return fmt.Errorf("move deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
}

// mergedOf says how far a bundle's deployments are merged, as the pass found them.
func mergedOf(bundle *fleet.Bundle, pass outcome) *status.Merged {
	if bundle.Spec.Merge == nil || bundle.Spec.Merge.Mode != fleet.MergePerRepo {
		return nil
	}
	merged := &status.Merged{Of: len(pass.current)}
	_, ok, reason := merge.PlaceOf(bundle)
	if merged.Reason = reason; !ok {
		return merged
	}
	for _, deployment := range pass.current {
		name := deployment.Labels[fleet.ClusterNamespaceLabel] + "/" + deployment.Labels[fleet.ClusterLabel]
		switch {
		case merge.InMerged(deployment):
			merged.Merged++
		case !pass.merging.understood(deployment):
			merged.Old = append(merged.Old, name)
		case pass.merging.of(deployment) == nil:
			merged.Large = append(merged.Large, name)
		}
	}
	return merged
}
