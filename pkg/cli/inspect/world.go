package inspect

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/status/cause"
)

// page is how many objects are asked for at a time, so that an answer never holds all files of all bundles.
const page = 100

// readWorld reads what there is to know about a workspace, or about all when namespace is "".
func readWorld(ctx context.Context, hub client.Client, namespace string) (cause.World, error) {
	var world cause.World
	var repos fleet.GitRepoList
	if err := hub.List(ctx, &repos, client.InNamespace(namespace)); err != nil {
		return world, fmt.Errorf("list git repos: %w", err)
	}
	var ops fleet.HelmOpList
	if err := hub.List(ctx, &ops, client.InNamespace(namespace)); err != nil {
		return world, fmt.Errorf("list helm ops: %w", err)
	}
	var clusters fleet.ClusterList
	if err := hub.List(ctx, &clusters, client.InNamespace(namespace)); err != nil {
		return world, fmt.Errorf("list clusters: %w", err)
	}
	var groups fleet.ClusterGroupList
	if err := hub.List(ctx, &groups, client.InNamespace(namespace)); err != nil {
		return world, fmt.Errorf("list cluster groups: %w", err)
	}
	world.GitRepos, world.HelmOps, world.Clusters, world.Groups = repos.Items, ops.Items, clusters.Items, groups.Items
	var err error
	if world.Bundles, err = readBundles(ctx, hub, namespace); err != nil {
		return world, err
	}
	var deployments fleet.BundleDeploymentList
	options := []client.ListOption{}
	if namespace != "" {
		options = append(options, client.MatchingLabels{fleet.BundleNamespaceLabel: namespace})
	}
	if err := hub.List(ctx, &deployments, options...); err != nil {
		return world, fmt.Errorf("list deployments: %w", err)
	}
	world.Deployments = merge.ExplodeAll(deployments.Items)
	return world, addClusters(ctx, hub, &world, namespace)
}

// readBundles reads the bundles page by page and drops their files.
func readBundles(ctx context.Context, hub client.Client, namespace string) ([]fleet.Bundle, error) {
	var bundles []fleet.Bundle
	next := ""
	for {
		var list fleet.BundleList
		if err := hub.List(ctx, &list, client.InNamespace(namespace), client.Limit(page), client.Continue(next)); err != nil {
			return nil, fmt.Errorf("list bundles: %w", err)
		}
		for i := range list.Items {
			list.Items[i].Spec.Resources = nil
		}
		bundles = append(bundles, list.Items...)
		if next = list.Continue; next == "" {
			return bundles, nil
		}
	}
}

// addClusters reads the clusters in other namespaces that bundles of the workspace are deployed to.
func addClusters(ctx context.Context, hub client.Client, world *cause.World, namespace string) error {
	if namespace == "" {
		return nil
	}
	read := map[string]bool{namespace: true}
	for i := range world.Deployments {
		other := world.Deployments[i].Labels[fleet.ClusterNamespaceLabel]
		if other == "" || read[other] {
			continue
		}
		read[other] = true
		var clusters fleet.ClusterList
		if err := hub.List(ctx, &clusters, client.InNamespace(other)); err != nil {
			return fmt.Errorf("list clusters in %s: %w", other, err)
		}
		world.Clusters = append(world.Clusters, clusters.Items...)
	}
	return nil
}
