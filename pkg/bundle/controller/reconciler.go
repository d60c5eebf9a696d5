package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// Rollups gives the numbers of a Bundle's deployments.
type Rollups interface {
	// Bundle returns what is counted; ok is false until all deployments were counted.
	Bundle(namespace, name string) (rollup status.Rollup, ok bool)
}

// Reconciler makes the BundleDeployments of Bundles. All fields but the private ones must be set.
type Reconciler struct {
	// Client writes, and reads from the cache: Bundles there are trimmed (see pkg/content).
	Client client.Client
	// Reader reads from the API server: Secrets, and Bundles with their files.
	Reader  client.Reader
	Rollups Rollups
	Now     func() time.Time

	contents *contents
	writes   settled
	values   valuesCache
}

// outcome is what a pass found out.
type outcome struct {
	plan    target.Plan
	planned bool
	err     error
}

// Reconcile makes one pass over a Bundle: gather, plan, execute, observe, one status patch.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var bundle fleet.Bundle
	if err := r.Client.Get(ctx, request.NamespacedName, &bundle); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !bundle.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.delete(ctx, &bundle)
	}
	if added, err := r.ensureFinalizer(ctx, &bundle); added || err != nil {
		// The answer has the files in place of their summary: go on with the cached object.
		return reconcile.Result{RequeueAfter: time.Millisecond}, err
	}
	pass := r.deploy(ctx, &bundle)
	if errors.Is(pass.err, errBehind) {
		return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}
	rollup, counted := r.Rollups.Bundle(bundle.Namespace, bundle.Name)
	if !counted {
		// Before everything is counted a status would be wrong.
		return reconcile.Result{RequeueAfter: time.Second}, transientOnly(pass.err)
	}
	if err := r.writeStatus(ctx, &bundle, observe(&bundle, pass, rollup, r.Now())); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: again(pass)}, transientOnly(pass.err)
}

// again is when to plan once more without an event: soon when the plan was cut at maxNew.
func again(pass outcome) time.Duration {
	switch {
	case pass.plan.More:
		return time.Millisecond
	case fault.ClassOf(pass.err) == fault.Waiting:
		return 2 * time.Second
	}
	return 0
}

// transientOnly returns errors that are worth a retry with back-off; the others wait for an event.
func transientOnly(err error) error {
	if fault.ClassOf(err) == fault.Transient {
		return err
	}
	return nil
}

// deploy gathers a snapshot, plans and executes.
func (r *Reconciler) deploy(ctx context.Context, bundle *fleet.Bundle) outcome {
	snapshot, err := r.gather(ctx, bundle)
	if err != nil {
		return outcome{err: err}
	}
	plan, err := target.NewPlan(snapshot)
	if err != nil {
		return outcome{err: err}
	}
	return outcome{plan: plan, planned: true, err: r.execute(ctx, bundle, snapshot, plan)}
}

func (r *Reconciler) ensureFinalizer(ctx context.Context, bundle *fleet.Bundle) (bool, error) {
	before := bundle.DeepCopy()
	if !controllerutil.AddFinalizer(bundle, fleet.BundleFinalizer) {
		return false, nil
	}
	if err := r.Client.Patch(ctx, bundle, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return true, fmt.Errorf("add finalizer to bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	return true, nil
}

// writeStatus patches the status when it differs.
func (r *Reconciler) writeStatus(ctx context.Context, bundle *fleet.Bundle, next fleet.BundleStatus) error {
	if equality.Semantic.DeepEqual(bundle.Status, next) {
		return nil
	}
	before := bundle.DeepCopy()
	bundle.Status = next
	if err := r.Client.Status().Patch(ctx, bundle, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status of bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	return nil
}
