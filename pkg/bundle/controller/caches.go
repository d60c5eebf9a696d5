package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/contents"
	"github.com/fairlead-dev/fairlead/pkg/cached"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// bundleIndex finds BundleDeployments by their Bundle.
const bundleIndex = "bundle"

// caches are what a pass reads whole lists of. Nothing in them may be changed.
type caches struct {
	deployments *cached.Objects[*fleet.BundleDeployment]
	clusters    *cached.Objects[*fleet.Cluster]
	bundles     *cached.Objects[*fleet.Bundle]
}

func newCaches(from cache.Informers) (caches, error) {
	deployments, err := cached.New(context.Background(), from, &fleet.BundleDeployment{}, indexesOfDeployments())
	if err != nil {
		return caches{}, err
	}
	clusters, err := cached.New(context.Background(), from, &fleet.Cluster{}, nil)
	if err != nil {
		return caches{}, err
	}
	bundles, err := cached.New(context.Background(), from, &fleet.Bundle{}, nil)
	return caches{deployments, clusters, bundles}, err
}

func indexesOfDeployments() map[string]cached.Index[*fleet.BundleDeployment] {
	return map[string]cached.Index[*fleet.BundleDeployment]{
		bundleIndex: func(deployment *fleet.BundleDeployment) []string {
			return []string{target.BundleOf(deployment.Labels).String()}
		},
		contents.DeploymentIndex: contents.OfDeployment,
	}
}

// ofBundle lists the deployments of a bundle by their labels.
func (c caches) ofBundle(ctx context.Context, bundle types.NamespacedName) ([]*fleet.BundleDeployment, error) {
	return c.deployments.By(ctx, bundleIndex, bundle.String())
}
