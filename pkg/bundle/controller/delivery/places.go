package delivery

import (
	"context"
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/merge/carrier"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// Places knows where the deployments of a bundle belong: each in an object of its own, or in one that it shares with those
// of other bundles. Make it with PlacesOf.
type Places struct {
	// needed says that some are merged or are to be.
	needed bool
	// place is where they are merged; nil when they are not to be.
	place *merge.Place
	// protocols of the agents, by namespace of their deployments.
	protocols map[string]int
}

// PlacesOf returns the places of a bundle's deployments on clusters, of which current exist.
func PlacesOf(bundle *fleet.Bundle, clusters []target.ClusterInfo, current []*fleet.BundleDeployment) Places {
	place, ok, _ := merge.PlaceOf(bundle)
	if !ok && !merge.AnyInMerged(current) {
		return Places{}
	}
	p := Places{needed: true, protocols: make(map[string]int, len(clusters))}
	if ok {
		p.place = &place
	}
	for i := range clusters {
		p.protocols[clusters[i].DeploymentNamespace] = clusters[i].Protocol
	}
	return p
}

// Of returns where a deployment belongs; nil stands for an object of its own.
func (p Places) Of(deployment *fleet.BundleDeployment) *merge.Place {
	if p.place == nil || !p.Understood(deployment) {
		return nil
	}
	if at := merge.Carriers(deployment)[0]; at.IsMerged() && p.place.Has(at.Name) {
		return p.place // it is not moved because it grows
	}
	if size, err := merge.Size(merge.PartOf(deployment)); err != nil || size > p.place.MaxBytes {
		return nil
	}
	return p.place
}

// Understood says that the agent of a deployment can read objects that several share.
func (p Places) Understood(deployment *fleet.BundleDeployment) bool {
	return p.protocols[deployment.Namespace] >= merge.Protocol
}

// moves returns the deployments that stay as they are, but not where they are.
func (p Places) moves(current []*fleet.BundleDeployment, plan target.Plan) []*fleet.BundleDeployment {
	if !p.needed {
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
		_, known := p.protocols[deployment.Namespace]
		if !known || busy[deployment.Namespace] || deployment.DeletionTimestamp != nil {
			continue
		}
		if !carrier.Settled(deployment, p.Of(deployment)) {
			moves = append(moves, deployment)
		}
	}
	return moves
}

// move brings a deployment a step to where it belongs.
func (p *pass) move(ctx context.Context, deployment *fleet.BundleDeployment) error {
	place := p.places.Of(deployment)
	err := p.write(place != nil || merge.InMerged(deployment), func() error {
		return p.options.Deployments.Move(ctx, deployment, place)
	})
	if err != nil {
		return fmt.Errorf("move deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
}
