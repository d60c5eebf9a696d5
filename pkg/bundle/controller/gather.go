package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/ledger"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/depends"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/policy/reader"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// gather freezes everything a plan depends on.
func (r *Reconciler) gather(ctx context.Context, bundle *fleet.Bundle) (target.Snapshot, error) {
	summary, ok := content.SummaryOf(bundle)
	if !ok {
		return target.Snapshot{}, fmt.Errorf("bundle %s/%s was not trimmed by the cache", bundle.Namespace, bundle.Name)
	}
	snapshot := target.Snapshot{
		ManifestID:       summary.ManifestID,
		Now:              r.Now(),
		PersonsEdit:      retargeted(bundle),
		ConfirmedDeletes: bundle.Annotations[fleet.ConfirmDeletesAnnotation],
	}
	current, err := r.deployments(ctx, bundle)
	if err != nil {
		return target.Snapshot{}, err
	}
	snapshot.Current = current
	if snapshot.MissingValues, err = r.values.Missing(ctx, current); err != nil {
		return target.Snapshot{}, err
	}
	if snapshot.Bundle, err = r.values.Inline(ctx, bundle); err != nil {
		return target.Snapshot{}, err
	}
	if snapshot.Rules, err = reader.Rules(ctx, r.Client, bundle.Namespace); err != nil {
		return target.Snapshot{}, err
	}
	if snapshot.First, err = r.first(ctx, bundle); err != nil {
		return target.Snapshot{}, err
	}
	namespaces, err := r.reachable(ctx, bundle)
	if err != nil {
		return target.Snapshot{}, err
	}
	for _, namespace := range namespaces {
		if err := r.addNamespace(ctx, &snapshot, namespace); err != nil {
			return target.Snapshot{}, err
		}
	}
	return snapshot, nil
}

// retargeted says that a person changed which clusters a bundle is to reach. Whatever else an edit changes, such as
// an image, explains no deletion: those that wait for a person go on waiting.
func retargeted(bundle *fleet.Bundle) bool {
	before, now := bundle.Status.ObservedTargets, target.Reach(&bundle.Spec)
	if before == "" || now == "" {
		return bundle.Generation != bundle.Status.ObservedGeneration // by another hub, or an older one
	}
	return before != now
}

// deployments returns those of a bundle, once the cache shows what the last pass wrote.
func (r *Reconciler) deployments(ctx context.Context, bundle *fleet.Bundle) ([]*fleet.BundleDeployment, error) {
	key := client.ObjectKeyFromObject(bundle)
	if r.writes.Behind(ctx, key) {
		return nil, ledger.ErrBehind
	}
	list, err := r.cached.ofBundle(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("list deployments of bundle %s: %w", key, err)
	}
	if !r.writes.Visible(key, list) {
		return nil, ledger.ErrBehind
	}
	return list, nil
}

// first returns the bundles to deliver before one.
func (r *Reconciler) first(ctx context.Context, bundle *fleet.Bundle) ([]target.First, error) {
	if len(bundle.Spec.DependsOn) == 0 {
		return nil, nil
	}
	beside, err := r.cached.bundles.In(ctx, bundle.Namespace)
	if err != nil {
		return nil, fmt.Errorf("list bundles in %s: %w", bundle.Namespace, err)
	}
	before := depends.Before(bundle, beside)
	// What becomes of them from here on wakes the bundle up, so that what is read now is not too old.
	r.interests.Follow(client.ObjectKeyFromObject(bundle), before)
	var firsts []target.First
	for _, other := range before {
		key := client.ObjectKeyFromObject(other)
		var now fleet.Bundle
		err := r.Client.Get(ctx, key, &now)
		if apierrors.IsNotFound(err) || err == nil && !now.DeletionTimestamp.IsZero() {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read bundle %s: %w", key, err)
		}
		current, err := r.cached.ofBundle(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("list deployments of bundle %s: %w", key, err)
		}
		firsts = append(firsts, target.First{Bundle: &now, Settled: now.Status.ObservedGeneration == now.Generation, Current: current})
	}
	return firsts, nil
}

func (r *Reconciler) addNamespace(ctx context.Context, snapshot *target.Snapshot, namespace string) error {
	clusters, err := r.cached.clusters.In(ctx, namespace)
	if err != nil {
		return fmt.Errorf("list clusters in %s: %w", namespace, err)
	}
	snapshot.Clusters = slices.Grow(snapshot.Clusters, len(clusters))
	for _, member := range clusters {
		if member.DeletionTimestamp.IsZero() {
			info := target.InfoOf(member)
			// Upstream's agents may write the status: deployments go nowhere but into the cluster's own namespace.
			info.DeploymentNamespace = cluster.ReadyNamespace(member)
			snapshot.Clusters = append(snapshot.Clusters, info)
		}
	}
	var groups fleet.ClusterGroupList
	if err := r.Client.List(ctx, &groups, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list clustergroups in %s: %w", namespace, err)
	}
	for i := range groups.Items {
		group := &groups.Items[i]
		problem := unreadable(group)
		if problem != nil && refersTo(&snapshot.Bundle.Spec, group) {
			// Without its members the bundle would leave their clusters.
			return problem
		}
		if problem == nil {
			snapshot.Groups = append(snapshot.Groups, *group)
		}
	}
	return nil
}

// unreadable says what is wrong with the selector of a cluster group.
func unreadable(group *fleet.ClusterGroup) error {
	if _, err := metav1.LabelSelectorAsSelector(group.Spec.Selector); err != nil {
		return fault.New(fault.Stalled, "InvalidClusterGroup",
			"the selector of ClusterGroup %s/%s cannot be read; nothing changes until it is corrected: %w", group.Namespace, group.Name, err)
	}
	return nil
}

// refersTo says that a bundle names a cluster group or selects it by its labels.
func refersTo(spec *fleet.BundleSpec, group *fleet.ClusterGroup) bool {
	return slices.ContainsFunc(target.Selectors(spec), func(selects fleet.ClusterTarget) bool {
		if selects.ClusterGroup != "" && selects.ClusterGroup == group.Name {
			return true
		}
		if selects.ClusterGroupSelector == nil {
			return false
		}
		selector, err := metav1.LabelSelectorAsSelector(selects.ClusterGroupSelector)
		return err == nil && selector.Matches(labels.Set(group.Labels))
	})
}

// reachable lists the namespaces whose clusters a bundle may reach: its own and those mapped to it.
func (r *Reconciler) reachable(ctx context.Context, bundle *fleet.Bundle) ([]string, error) {
	found := []string{bundle.Namespace}
	var mappings fleet.BundleNamespaceMappingList
	if err := r.Client.List(ctx, &mappings, client.InNamespace(bundle.Namespace)); err != nil {
		return nil, fmt.Errorf("list bundlenamespacemappings in %s: %w", bundle.Namespace, err)
	}
	seen := map[string]bool{bundle.Namespace: true}
	for i := range mappings.Items {
		mapped, err := r.mapped(ctx, &mappings.Items[i], bundle)
		if err != nil {
			return nil, err
		}
		for _, namespace := range mapped {
			if !seen[namespace] {
				seen[namespace] = true
				found = append(found, namespace)
			}
		}
	}
	return found, nil
}

func (r *Reconciler) mapped(ctx context.Context, mapping *fleet.BundleNamespaceMapping, bundle *fleet.Bundle) ([]string, error) {
	if mapping.BundleSelector == nil || mapping.NamespaceSelector == nil {
		return nil, nil
	}
	bundles, err := metav1.LabelSelectorAsSelector(mapping.BundleSelector)
	if err != nil {
		return nil, invalidMapping(mapping, "bundleSelector", err)
	}
	if !bundles.Matches(labels.Set(bundle.Labels)) {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(mapping.NamespaceSelector)
	if err != nil {
		return nil, invalidMapping(mapping, "namespaceSelector", err)
	}
	var namespaces corev1.NamespaceList
	if err := r.Client.List(ctx, &namespaces, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list namespaces of bundlenamespacemapping %s/%s: %w", mapping.Namespace, mapping.Name, err)
	}
	found := make([]string, 0, len(namespaces.Items))
	for i := range namespaces.Items {
		found = append(found, namespaces.Items[i].Name)
	}
	return found, nil
}

func invalidMapping(mapping *fleet.BundleNamespaceMapping, field string, err error) error {
	return fault.New(fault.Stalled, "InvalidMapping", "BundleNamespaceMapping %s/%s: %s: %w", mapping.Namespace, mapping.Name, field, err)
}
