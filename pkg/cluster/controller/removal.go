package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	if confirmed, err := r.confirmDeleted(ctx, stored); err != nil || !confirmed {
		return reconcile.Result{RequeueAfter: behindRetry}, err
	}
	namespace, err := r.ownNamespace(ctx, stored)
	if err != nil {
		return reconcile.Result{}, err
	}
	var left []fleet.BundleDeployment
	if namespace != nil {
		if left, err = r.removeDeployments(ctx, namespace.Name); err != nil {
			return reconcile.Result{}, err
		}
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
	if namespace != nil {
		if err := r.removeNamespace(ctx, namespace); err != nil {
			return reconcile.Result{}, err
		}
	}
	before := stored.DeepCopy()
	controllerutil.RemoveFinalizer(stored, fleet.ClusterFinalizer)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, stored, patch); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("release Cluster %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	return reconcile.Result{}, nil
}

// behindRetry is when a Cluster is looked at again of which the cache shows an older state.
const behindRetry = 500 * time.Millisecond

// confirmDeleted asks the API server whether exactly this Cluster is being deleted. A cache that is behind may
// show one that is gone, whose name and namespace another one has by now.
func (r *clusters) confirmDeleted(ctx context.Context, stored *fleet.Cluster) (bool, error) {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(fleet.GroupVersion.WithKind("Cluster"))
	err := r.live.Get(ctx, client.ObjectKeyFromObject(stored), now)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Cluster %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	return err == nil && now.UID == stored.UID && now.DeletionTimestamp != nil, nil
}

// ownNamespace returns the namespace of a Cluster as it is, nil for none. One of that name that is not the
// Cluster's is not touched, nor is anything in it: long names may meet in one.
func (r *clusters) ownNamespace(ctx context.Context, stored *fleet.Cluster) (*corev1.Namespace, error) {
	wanted := cluster.Namespace(stored)
	var current corev1.Namespace
	err := r.live.Get(ctx, client.ObjectKeyFromObject(wanted), &current)
	if apierrors.IsNotFound(err) || err == nil && !cluster.Owns(stored, &current) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", wanted.Name, err)
	}
	return &current, nil
}

// removeDeployments deletes the BundleDeployments of a namespace and returns those that wait for the agent:
// they have its finalizer, as another engine's hub gives it, and the agent has not reported that nothing is
// installed any more.
func (r *clusters) removeDeployments(ctx context.Context, namespace string) ([]fleet.BundleDeployment, error) {
	var all fleet.BundleDeploymentList
	if err := r.live.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list deployments in %s: %w", namespace, err)
	}
	var left, done []fleet.BundleDeployment
	var failures []error
	for _, deployment := range all.Items {
		if deployment.DeletionTimestamp == nil {
			if err := r.client.Delete(ctx, deployment.DeepCopy()); client.IgnoreNotFound(err) != nil {
				failures = append(failures, fmt.Errorf("delete deployment %s/%s: %w", namespace, deployment.Name, err))
				continue
			}
		}
		switch {
		case !slices.Contains(deployment.Finalizers, fleet.BundleDeploymentFinalizer):
		case deployment.Status.AppliedDeploymentID == "":
			done = append(done, deployment)
		default:
			left = append(left, deployment)
		}
	}
	return left, errors.Join(append(failures, r.release(ctx, done))...)
}

// release takes the agent's finalizer off deployments. Agents cannot: they do not write deployments.
func (r *clusters) release(ctx context.Context, deployments []fleet.BundleDeployment) error {
	var failures []error
	for i := range deployments {
		var deployment fleet.BundleDeployment
		err := r.live.Get(ctx, client.ObjectKeyFromObject(&deployments[i]), &deployment) // as the deletion left it
		if err == nil {
			before := deployment.DeepCopy()
			controllerutil.RemoveFinalizer(&deployment, fleet.BundleDeploymentFinalizer)
			err = r.client.Patch(ctx, &deployment, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		}
		if client.IgnoreNotFound(err) != nil {
			failures = append(failures, fmt.Errorf("release deployment %s/%s: %w", deployments[i].Namespace, deployments[i].Name, err))
		}
	}
	return errors.Join(failures...)
}

// removeNamespace takes a cluster's rights away and deletes its namespace. Finalizers that an agent has put
// on its lease would hold the namespace for ever, and its name with it.
func (r *clusters) removeNamespace(ctx context.Context, namespace *corev1.Namespace) error {
	if err := r.objects.Remove(ctx, cluster.AgentBinding(namespace.Name)); err != nil {
		return err
	}
	if namespace.DeletionTimestamp == nil {
		err := r.client.Delete(ctx, namespace, client.Preconditions{UID: uidOf(namespace)})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete namespace %s: %w", namespace.Name, err)
		}
	}
	lease := cluster.Lease(namespace.Name)
	err := r.objects.cached.Delete(ctx, lease)
	if err == nil {
		unbound := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		err = r.objects.cached.Patch(ctx, lease, unbound)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the lease in %s: %w", namespace.Name, err)
	}
	return nil
}
