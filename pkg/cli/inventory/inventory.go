package inventory

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/cli/stream"
	"github.com/fairlead-dev/fairlead/pkg/names"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// Inventory is what targeting depends on.
type Inventory struct {
	Clusters   []fleet.Cluster
	Groups     []fleet.ClusterGroup
	Mappings   []fleet.BundleNamespaceMapping
	Namespaces []corev1.Namespace
}

// Load returns the inventory of a file, or that of the hub when file is "". Namespaces are those of the
// bundles that are to be targeted; the first is where clusters of a file are that name none.
func Load(ctx context.Context, s *session.Session, file string, namespaces ...string) (Inventory, error) {
	if file == "" {
		connection, err := s.Client()
		if err != nil {
			return Inventory{}, fmt.Errorf("read clusters from the hub (or name a file with --clusters): %w", err)
		}
		return fromHub(ctx, connection, namespaces)
	}
	data, err := s.ReadFile(file)
	if err != nil {
		return Inventory{}, fmt.Errorf("read clusters: %w", err)
	}
	objects, err := stream.Decode(file, data)
	if err != nil {
		return Inventory{}, fmt.Errorf("read clusters: %w", err)
	}
	s.WarnAll(objects.Warnings)
	if len(objects.Clusters) == 0 {
		return Inventory{}, fmt.Errorf("read clusters: %s holds no Cluster", file)
	}
	return complete(objects, namespaces), nil
}

// complete fills in what a file may leave out and a hub always has.
func complete(objects stream.Objects, namespaces []string) Inventory {
	home := session.LocalNamespace
	if len(namespaces) > 0 {
		home = namespaces[0]
	}
	inventory := Inventory{
		Clusters: objects.Clusters, Groups: objects.Groups, Mappings: objects.Mappings, Namespaces: objects.Namespaces,
	}
	for i := range inventory.Clusters {
		cluster := &inventory.Clusters[i]
		setDefault(&cluster.Namespace, home)
		setDefault(&cluster.Status.Namespace, names.ClusterNamespace(cluster.Namespace, cluster.Name))
	}
	for i := range inventory.Groups {
		setDefault(&inventory.Groups[i].Namespace, home)
	}
	for i := range inventory.Mappings {
		setDefault(&inventory.Mappings[i].Namespace, home)
	}
	return inventory
}

func setDefault(value *string, fallback string) {
	if *value == "" {
		*value = fallback
	}
}

func fromHub(ctx context.Context, hub client.Client, namespaces []string) (Inventory, error) {
	var inventory Inventory
	for _, namespace := range unique(namespaces) {
		var mappings fleet.BundleNamespaceMappingList
		if err := hub.List(ctx, &mappings, client.InNamespace(namespace)); err != nil {
			return inventory, fmt.Errorf("list bundle namespace mappings in %s: %w", namespace, err)
		}
		inventory.Mappings = append(inventory.Mappings, mappings.Items...)
	}
	open := slices.Clone(namespaces)
	if len(inventory.Mappings) > 0 {
		var list corev1.NamespaceList
		if err := hub.List(ctx, &list); err != nil {
			return inventory, fmt.Errorf("list namespaces: %w", err)
		}
		inventory.Namespaces = list.Items
		for _, mapping := range inventory.Mappings {
			mapped, err := inventory.mapped(mapping)
			if err != nil {
				return inventory, err
			}
			open = append(open, mapped...)
		}
	}
	for _, namespace := range unique(open) {
		var clusters fleet.ClusterList
		if err := hub.List(ctx, &clusters, client.InNamespace(namespace)); err != nil {
			return inventory, fmt.Errorf("list clusters in %s: %w", namespace, err)
		}
		var groups fleet.ClusterGroupList
		if err := hub.List(ctx, &groups, client.InNamespace(namespace)); err != nil {
			return inventory, fmt.Errorf("list cluster groups in %s: %w", namespace, err)
		}
		inventory.Clusters = append(inventory.Clusters, clusters.Items...)
		inventory.Groups = append(inventory.Groups, groups.Items...)
	}
	return inventory, nil
}

// For returns the clusters and groups that a bundle can reach.
func (i Inventory) For(bundle *fleet.Bundle) ([]target.ClusterInfo, []fleet.ClusterGroup, error) {
	open := []string{bundle.Namespace}
	for _, mapping := range i.Mappings {
		if mapping.Namespace != bundle.Namespace {
			continue
		}
		chosen, err := selects(mapping.BundleSelector, bundle.Labels)
		if err != nil {
			return nil, nil, fmt.Errorf("read bundleSelector of mapping %s/%s: %w", mapping.Namespace, mapping.Name, err)
		}
		if !chosen {
			continue
		}
		mapped, err := i.mapped(mapping)
		if err != nil {
			return nil, nil, err
		}
		open = append(open, mapped...)
	}
	var clusters []target.ClusterInfo
	for n := range i.Clusters {
		if slices.Contains(open, i.Clusters[n].Namespace) {
			clusters = append(clusters, target.InfoOf(&i.Clusters[n]))
		}
	}
	var groups []fleet.ClusterGroup
	for _, group := range i.Groups {
		if slices.Contains(open, group.Namespace) {
			groups = append(groups, group)
		}
	}
	return clusters, groups, nil
}

// mapped returns the namespaces that a mapping opens.
func (i Inventory) mapped(mapping fleet.BundleNamespaceMapping) ([]string, error) {
	var open []string
	for _, namespace := range i.Namespaces {
		chosen, err := selects(mapping.NamespaceSelector, namespace.Labels)
		if err != nil {
			return nil, fmt.Errorf("read namespaceSelector of mapping %s/%s: %w", mapping.Namespace, mapping.Name, err)
		}
		if chosen {
			open = append(open, namespace.Name)
		}
	}
	return open, nil
}

// selects says whether a selector chooses labels; one that is left out chooses nothing.
func selects(selector *metav1.LabelSelector, set map[string]string) (bool, error) {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, err
	}
	return compiled.Matches(labels.Set(set)), nil
}

func unique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
