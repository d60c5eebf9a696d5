package controller

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/contents"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/delivery"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/interests"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/ledger"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/validation"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/values"
	"github.com/fairlead-dev/fairlead/pkg/cached"
)

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
	r.interests, err = interests.New(mgr.GetFieldIndexer(), interests.Options{
		Client: r.Client, IsOwn: r.writes.IsOwn, Count: r.Metrics.planned,
		ValuesOfBundles: ofBundles, ValuesOfDeployments: ofDeployments, ForgetValues: r.values.Forget,
	})
	if err != nil {
		return err
	}
	r.Shards.BeforeWork(r.writes.CatchUp)
	build := ctrl.NewControllerManagedBy(mgr).
		Named("bundle").
		For(&fleet.Bundle{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{}, deletion()))).
		WatchesRawSource(rollups).
		WatchesRawSource(r.validator.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	r.interests.Watch(build)
	r.contents.Watch(build)
	return r.Shards.Complete(mgr, build, &fleet.Bundle{}, r)
}

func deletion() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
	}}
}

// namesOnly leaves of Secrets what tells them apart.
func namesOnly(object any) (any, error) {
	if found, ok := object.(*metav1.PartialObjectMetadata); ok {
		found.ObjectMeta = metav1.ObjectMeta{
			Namespace: found.Namespace, Name: found.Name, UID: found.UID, ResourceVersion: found.ResourceVersion,
		}
	}
	return object, nil
}
