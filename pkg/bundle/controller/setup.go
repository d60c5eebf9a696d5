package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/contents"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/delivery"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/ledger"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/validation"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/values"
	"github.com/fairlead-dev/fairlead/pkg/cached"
)

// nameIndex finds the Bundles of a name in all namespaces.
const nameIndex = "name"

// Register adds the controller of Bundles, and those of what it keeps, to a manager. Changes of the numbers of a
// Bundle's deployments arrive through rollups.
func (r *Reconciler) Register(mgr ctrl.Manager, rollups source.Source, workers int) error {
	var err error
	if r.cached, err = newCaches(mgr.GetCache()); err != nil {
		return err
	}
	r.writes = ledger.New(ledger.Options{Client: r.Client, Reader: r.Reader, Caches: r.Caches, Deployments: r.cached.deployments, Now: r.Now})
	r.contents, err = contents.Register(mgr, contents.Options{
		Client: r.Client, Reader: r.Reader, Keeper: r.Keeper, Events: r.Events,
		Deployments: r.cached.deployments, Caches: r.Caches, Shards: r.Shards, Now: r.Now, KeepUnused: r.UnusedContents,
	})
	if err != nil {
		return err
	}
	r.validator = validation.New(validation.Options{
		Files: r.contents.Files, Render: r.Render,
		Count: r.Metrics.rendered, Now: r.Now, Log: mgr.GetLogger().WithName("validation"),
	})
	if err := mgr.Add(r.validator); err != nil {
		return fmt.Errorf("add the validation of bundles: %w", err)
	}
	if err := index(mgr); err != nil {
		return err
	}
	ofBundles, err := cached.Secrets(mgr, r.Caches, fleet.BundleValuesSecretType, namesOnly)
	if err != nil {
		return err
	}
	ofDeployments, err := cached.Secrets(mgr, r.Caches, fleet.DeploymentValuesSecretType, namesOnly)
	if err != nil {
		return err
	}
	r.values = values.New(values.Options{Client: r.Client, Reader: r.Reader, Names: ofDeployments})
	r.delivery = delivery.New(delivery.Options{
		Reader: r.Reader, Deployments: r.Deployments, Contents: r.contents, Values: r.values,
		Ledger: r.writes, Writing: r.Rollups.Writing, Count: r.Metrics.wrote,
	})
	r.Shards.BeforeWork(r.writes.CatchUp)
	build := ctrl.NewControllerManagedBy(mgr).
		Named("bundle").
		For(&fleet.Bundle{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletion()))).
		Watches(&fleet.BundleDeployment{}, r.deploymentEvents()).
		Watches(&fleet.Cluster{}, r.clusterEvents()).
		Watches(&fleet.ClusterGroup{}, handler.EnqueueRequestsFromMapFunc(r.groupReaches), builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&fleet.BundleNamespaceMapping{}, handler.EnqueueRequestsFromMapFunc(r.bundlesBeside)).
		Watches(&fleet.Policy{}, handler.EnqueueRequestsFromMapFunc(r.bundlesBeside)).
		Watches(&fleet.GitRepoRestriction{}, handler.EnqueueRequestsFromMapFunc(r.bundlesBeside)).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.bundlesMapped), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(rollups).
		WatchesRawSource(r.validator.Source()).
		WatchesRawSource(source.Kind(ofBundles, cached.SecretMetadata(), r.bundleValues())).
		WatchesRawSource(source.Kind(ofDeployments, cached.SecretMetadata(), r.deploymentValues())).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	r.contents.Watch(build)
	return r.Shards.Complete(mgr, build, &fleet.Bundle{}, r)
}

func index(mgr ctrl.Manager) error {
	indexer := mgr.GetFieldIndexer()
	err := indexer.IndexField(context.Background(), &fleet.Bundle{}, nameIndex, func(object client.Object) []string {
		return []string{object.GetName()}
	})
	if err != nil {
		return fmt.Errorf("index bundles by name: %w", err)
	}
	return nil
}

func deletion() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

func bundleOf(_ context.Context, object client.Object) []reconcile.Request {
	labels := object.GetLabels()
	if labels[fleet.BundleLabel] == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: labels[fleet.BundleNamespaceLabel], Name: labels[fleet.BundleLabel],
	}}}
}

// bundlesNamed lists the Bundle of a deployment and all others of its name: one of them may wait for the
// deployment to go, so that it can have its own of that name.
func (r *Reconciler) bundlesNamed(ctx context.Context, object client.Object) []reconcile.Request {
	requests := bundleOf(ctx, object)
	var list fleet.BundleList
	if err := r.Client.List(ctx, &list, client.MatchingFields{nameIndex: object.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list bundles", "name", object.GetName())
	}
	for i := range list.Items {
		if request := (reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}); !slices.Contains(requests, request) {
			requests = append(requests, request)
		}
	}
	return requests
}

// bundlesBeside lists the bundles of an object's namespace.
func (r *Reconciler) bundlesBeside(ctx context.Context, object client.Object) []reconcile.Request {
	return r.bundlesIn(ctx, object.GetNamespace())
}

// bundlesMapped lists the bundles of all namespaces with a mapping: any of them may reach further.
func (r *Reconciler) bundlesMapped(ctx context.Context, _ client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, namespace := range r.mappedNamespaces(ctx) {
		requests = append(requests, r.bundlesIn(ctx, namespace)...)
	}
	return requests
}

// mappedNamespaces lists the namespaces with a mapping, each once.
func (r *Reconciler) mappedNamespaces(ctx context.Context) []string {
	var mappings fleet.BundleNamespaceMappingList
	if err := r.Client.List(ctx, &mappings); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list bundlenamespacemappings")
		return nil
	}
	var namespaces []string
	for i := range mappings.Items {
		if namespace := mappings.Items[i].Namespace; !slices.Contains(namespaces, namespace) {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

func (r *Reconciler) bundlesIn(ctx context.Context, namespace string) []reconcile.Request {
	var list fleet.BundleList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list bundles", "namespace", namespace)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
