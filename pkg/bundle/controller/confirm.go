package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/ledger"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// doubted bounds how many of the deletions that wait for a person are looked at.
const doubted = 10

// confirmed returns a plan whose deletions hold by what the API server itself says: the bundle is the one that
// was planned, and clusters, groups and mappings are, read one by one where that is possible, such that the
// deployments have to go. When they are not, the cache is wrong: it is listed anew, and nothing of the plan is
// carried out.
func (r *Reconciler) confirmed(ctx context.Context, bundle *fleet.Bundle, snapshot target.Snapshot, plan target.Plan) (target.Plan, error) {
	candidates := plan.Delete
	if plan.Guard != nil {
		candidates = slices.Concat(candidates, plan.Guard.Held[:min(doubted, len(plan.Guard.Held))])
	}
	if len(candidates) == 0 {
		return plan, nil
	}
	if err := r.confirmBundle(ctx, bundle); err != nil {
		return target.Plan{}, err
	}
	second, err := r.secondOpinion(ctx, bundle, snapshot, candidates)
	if err != nil {
		return target.Plan{}, err
	}
	again, err := target.NewPlan(second)
	if err != nil {
		return target.Plan{}, err
	}
	leave := again.Delete
	if again.Guard != nil {
		leave = slices.Concat(leave, again.Guard.Held)
	}
	for i := range candidates {
		if !slices.ContainsFunc(leave, func(d target.Deployment) bool { return d.Object.UID == candidates[i].Object.UID }) {
			for _, kind := range []client.Object{&fleet.Cluster{}, &fleet.ClusterGroup{}, &fleet.BundleNamespaceMapping{}, &corev1.Namespace{}} {
				r.Caches.Refresh(kind)
			}
			return target.Plan{}, fault.New(fault.Transient, "CacheWrong",
				"nothing is written: the cache lacks what lets the bundle reach Cluster %s, which is there; it is being listed anew", candidates[i].Cluster)
		}
	}
	if len(plan.Delete) > 0 && again.Guard != nil {
		plan.Delete, plan.Guard = nil, again.Guard // nothing that could be asked for by name speaks for or against it
	}
	return plan, nil
}

// doubt says of a kind that is needed to reach clusters, and of which there is none, that there may be some.
// Until one was seen its caches are listed anew from time to time.
func (r *Reconciler) doubt(second *target.Snapshot, kind client.Object, name string) {
	if r.Caches.Seen(kind) {
		return
	}
	second.Doubt = fmt.Sprintf("no %s is listed, and none was since the controller started", name)
	r.Caches.Refresh(kind)
}

// confirmBundle returns an error unless the API server has the bundle as it is here, but for its status.
func (r *Reconciler) confirmBundle(ctx context.Context, bundle *fleet.Bundle) error {
	now := bundleMetadata()
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(bundle), now)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	case err != nil || now.UID != bundle.UID || now.Generation != bundle.Generation || now.DeletionTimestamp.IsZero() != bundle.DeletionTimestamp.IsZero():
		return ledger.ErrBehind
	}
	return nil
}

func bundleMetadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(fleet.GroupVersion.WithKind("Bundle"))
	return object
}

// secondOpinion returns the snapshot with what the API server says of the clusters of candidates, and of what
// lets the bundle reach them.
func (r *Reconciler) secondOpinion(ctx context.Context, bundle *fleet.Bundle, snapshot target.Snapshot, candidates []target.Deployment) (target.Snapshot, error) {
	second := snapshot
	second.Clusters = slices.Clone(snapshot.Clusters)
	namespaces := map[string]bool{}
	for i := range candidates {
		carried := candidates[i].Object.Labels
		key := client.ObjectKey{Namespace: carried[fleet.ClusterNamespaceLabel], Name: carried[fleet.ClusterLabel]}
		second.Clusters = slices.DeleteFunc(second.Clusters, func(c target.ClusterInfo) bool { return c.Namespace == key.Namespace && c.Name == key.Name })
		var now fleet.Cluster
		err := r.Reader.Get(ctx, key, &now)
		if confirm.Gone(err) || err == nil && !now.DeletionTimestamp.IsZero() {
			continue
		}
		if err != nil {
			return second, fmt.Errorf("read cluster %s: %w", key, err)
		}
		if _, asked := namespaces[key.Namespace]; !asked {
			if namespaces[key.Namespace], err = r.reaches(ctx, bundle, key.Namespace, &second); err != nil {
				return second, err
			}
		}
		if namespaces[key.Namespace] {
			info := target.InfoOf(&now)
			info.DeploymentNamespace = cluster.ReadyNamespace(&now)
			second.Clusters = append(second.Clusters, info)
		}
	}
	for namespace, reached := range namespaces {
		if reached {
			if err := r.confirmGroups(ctx, namespace, &second); err != nil {
				return second, err
			}
		}
	}
	return second, nil
}

// reaches says whether the API server's mappings let a bundle reach a namespace's clusters.
func (r *Reconciler) reaches(ctx context.Context, bundle *fleet.Bundle, namespace string, second *target.Snapshot) (bool, error) {
	if namespace == bundle.Namespace {
		return true, nil
	}
	var mappings fleet.BundleNamespaceMappingList
	if err := r.Reader.List(ctx, &mappings, client.InNamespace(bundle.Namespace)); err != nil {
		return false, fmt.Errorf("list bundlenamespacemappings in %s: %w", bundle.Namespace, err)
	}
	if len(mappings.Items) == 0 {
		r.doubt(second, &fleet.BundleNamespaceMapping{}, "BundleNamespaceMapping")
	}
	var now corev1.Namespace
	if err := r.Reader.Get(ctx, client.ObjectKey{Name: namespace}, &now); err != nil {
		if confirm.Gone(err) {
			return false, nil
		}
		return false, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	for i := range mappings.Items {
		bundles, inBundles := metav1.LabelSelectorAsSelector(mappings.Items[i].BundleSelector)
		selector, inNamespaces := metav1.LabelSelectorAsSelector(mappings.Items[i].NamespaceSelector)
		if inBundles == nil && inNamespaces == nil && bundles.Matches(labels.Set(bundle.Labels)) && selector.Matches(labels.Set(now.Labels)) {
			return true, nil
		}
	}
	return false, nil
}

// confirmGroups replaces the groups of a namespace by those of the API server.
func (r *Reconciler) confirmGroups(ctx context.Context, namespace string, second *target.Snapshot) error {
	names, selects := groupsNamed(&second.Bundle.Spec)
	if len(names) == 0 && !selects {
		return nil
	}
	var groups fleet.ClusterGroupList
	if err := r.Reader.List(ctx, &groups, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list clustergroups in %s: %w", namespace, err)
	}
	if len(groups.Items) == 0 && selects {
		r.doubt(second, &fleet.ClusterGroup{}, "ClusterGroup")
	}
	for _, name := range names {
		if slices.ContainsFunc(groups.Items, func(g fleet.ClusterGroup) bool { return g.Name == name }) {
			continue
		}
		var group fleet.ClusterGroup
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &group)
		if err == nil {
			groups.Items = append(groups.Items, group)
		} else if !confirm.Gone(err) {
			return fmt.Errorf("read clustergroup %s/%s: %w", namespace, name, err)
		}
	}
	second.Groups = slices.DeleteFunc(slices.Clone(second.Groups), func(g fleet.ClusterGroup) bool { return g.Namespace == namespace })
	for i := range groups.Items {
		if err := unreadable(&groups.Items[i]); err != nil {
			return err
		}
	}
	second.Groups = append(second.Groups, groups.Items...)
	return nil
}

// groupsNamed lists the groups that targets name, and says whether any selects groups by labels.
func groupsNamed(spec *fleet.BundleSpec) (names []string, selects bool) {
	for _, block := range target.Selectors(spec) {
		if block.ClusterGroup != "" {
			names = append(names, block.ClusterGroup)
		}
		selects = selects || block.ClusterGroupSelector != nil
	}
	return names, selects
}
