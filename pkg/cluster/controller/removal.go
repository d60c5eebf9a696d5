package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
)

// remove takes a deleted Cluster off the hub: its deployments first, so that an agent that answers
// uninstalls them while it may still read them; then its registrations and its namespace with
// everything in it. An agent that does not answer is waited for no longer than the grace, and not at
// all when its heartbeat is gone already.
func (r *clusters) remove(ctx context.Context, stored *fleet.Cluster) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(stored, fleet.ClusterFinalizer) {
		return reconcile.Result{}, nil
	}
	namespace := cluster.Namespace(stored).Name
	left, err := r.removeDeployments(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(left) > 0 {
		wait := stored.DeletionTimestamp.Add(r.options.DeletionGrace).Sub(r.options.Now())
		if stored.Status.Phase == fleet.ClusterReady && wait > 0 {
			return reconcile.Result{RequeueAfter: wait}, nil
		}
		if err := r.release(ctx, left); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.joining.Forget(ctx, stored); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.removeNamespace(ctx, stored); err != nil {
		return reconcile.Result{}, err
	}
	before := stored.DeepCopy()
	controllerutil.RemoveFinalizer(stored, fleet.ClusterFinalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, stored, patch); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("release Cluster %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	return reconcile.Result{}, nil
}

// removeDeployments deletes the BundleDeployments of a namespace and returns those that are still there.
func (r *clusters) removeDeployments(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error) {
	var all metav1.PartialObjectMetadataList
	all.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeploymentList"))
	if err := r.live.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list deployments in %s: %w", namespace, err)
	}
	var left []metav1.PartialObjectMetadata
	var failures []error
	for _, deployment := range all.Items {
		deployment.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeployment"))
		if deployment.DeletionTimestamp == nil {
			if err := r.client.Delete(ctx, &deployment); client.IgnoreNotFound(err) != nil {
				failures = append(failures, fmt.Errorf("delete deployment %s/%s: %w", namespace, deployment.Name, err))
				continue
			}
		}
		if slices.Contains(deployment.Finalizers, fleet.BundleDeploymentFinalizer) {
			left = append(left, deployment)
		}
	}
	return left, errors.Join(failures...)
}

// release takes the agent's finalizer off deployments that no agent will take it off.
func (r *clusters) release(ctx context.Context, deployments []metav1.PartialObjectMetadata) error {
	var failures []error
	for i := range deployments {
		deployment := &deployments[i]
		before := deployment.DeepCopy()
		controllerutil.RemoveFinalizer(deployment, fleet.BundleDeploymentFinalizer)
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.client.Patch(ctx, deployment, patch); client.IgnoreNotFound(err) != nil {
			failures = append(failures, fmt.Errorf("release deployment %s/%s: %w", deployment.Namespace, deployment.Name, err))
		}
	}
	return errors.Join(failures...)
}

// removeNamespace deletes the cluster's namespace; one of that name which is not the cluster's stays.
func (r *clusters) removeNamespace(ctx context.Context, stored *fleet.Cluster) error {
	wanted := cluster.Namespace(stored)
	var current corev1.Namespace
	err := r.live.Get(ctx, client.ObjectKeyFromObject(wanted), &current)
	if apierrors.IsNotFound(err) || err == nil && (current.DeletionTimestamp != nil || !mayTake(&current, wanted)) {
		return nil
	}
	if err == nil {
		err = client.IgnoreNotFound(r.client.Delete(ctx, &current, client.Preconditions{UID: uidOf(&current)}))
	}
	if err != nil {
		return fmt.Errorf("delete namespace %s: %w", wanted.Name, err)
	}
	return nil
}
