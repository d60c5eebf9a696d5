package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cached"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

func namesOnly(object any) (any, error) {
	if found, ok := object.(*metav1.PartialObjectMetadata); ok {
		found.ObjectMeta = metav1.ObjectMeta{
			Namespace: found.Namespace, Name: found.Name, UID: found.UID, ResourceVersion: found.ResourceVersion,
		}
	}
	return object, nil
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// bundleValues wakes the Bundle up whose values came, changed or went.
func (r *Reconciler) bundleValues() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	wake := func(object client.Object, queue requests) {
		queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], queue requests) {
			wake(e.Object, queue)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], queue requests) {
			wake(e.ObjectNew, queue)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*metav1.PartialObjectMetadata], queue requests) {
			// The next pass finds out that they are missing and says so; whoever made the Bundle writes them again.
			r.values.drop(client.ObjectKeyFromObject(e.Object))
			wake(e.Object, queue)
		},
	}
}

// deploymentValues wakes the Bundle up whose deployment lost its values.
func (r *Reconciler) deploymentValues() handler.TypedEventHandler[*metav1.PartialObjectMetadata, reconcile.Request] {
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, reconcile.Request]{
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*metav1.PartialObjectMetadata], queue requests) {
			var deployment fleet.BundleDeployment
			if err := r.Client.Get(ctx, client.ObjectKeyFromObject(e.Object), &deployment); err != nil || !needsValues(&deployment) {
				return
			}
			for _, request := range bundleOf(ctx, &deployment) {
				queue.Add(request)
			}
		},
	}
}

func needsValues(deployment *fleet.BundleDeployment) bool {
	return deployment.Spec.ValuesHash != "" && deployment.DeletionTimestamp.IsZero()
}

// waitsForValues says that the agent found no values, or others than those of the deployment.
func waitsForValues(deployment *fleet.BundleDeployment) bool {
	deployed := status.Find(deployment.Status.Conditions, fleet.ConditionDeployed)
	return deployed != nil && deployed.Reason == fleet.ReasonWaitingForValues
}

// missingValues returns the deployments ("namespace/name") whose values are gone or another version's. What
// the cache does not show, or an agent complains about, is asked from the API server: it may have been
// written a moment ago.
func (r *Reconciler) missingValues(ctx context.Context, deployments []*fleet.BundleDeployment) (map[string]bool, error) {
	missing := map[string]bool{}
	for _, deployment := range deployments {
		if !needsValues(deployment) {
			continue
		}
		key := client.ObjectKeyFromObject(deployment)
		look := r.secretGone
		if waitsForValues(deployment) {
			look = func(ctx context.Context, key types.NamespacedName) (bool, error) {
				return r.secretDiffers(ctx, key, deployment.Spec.ValuesHash)
			}
		}
		gone, err := look(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("look for values of deployment %s: %w", key, err)
		}
		if gone {
			missing[key.String()] = true
		}
	}
	return missing, nil
}

func (r *Reconciler) secretDiffers(ctx context.Context, key types.NamespacedName, hash string) (bool, error) {
	var secret corev1.Secret
	if err := r.Reader.Get(ctx, key, &secret); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return content.DeploymentValuesHash(secret.Data[target.ValuesKey], secret.Data[target.StagedValuesKey]) != hash, nil
}

func (r *Reconciler) secretGone(ctx context.Context, key types.NamespacedName) (bool, error) {
	for _, reader := range []client.Reader{r.valuesOfDeployments, r.Reader} {
		err := reader.Get(ctx, key, cached.SecretMetadata())
		if err == nil {
			return false, nil
		}
		if !apierrors.IsNotFound(err) {
			return false, err
		}
	}
	return true, nil
}

// writeValues stores the values of a deployment that is known to be ours in the Secret of its name.
func (r *Reconciler) writeValues(ctx context.Context, deployment *fleet.BundleDeployment, data map[string][]byte) error {
	if data == nil {
		return nil
	}
	err := r.Client.Create(ctx, valuesSecret(deployment, data))
	if apierrors.IsAlreadyExists(err) {
		err = r.Client.Update(ctx, valuesSecret(deployment, data))
	}
	if err != nil {
		return fmt.Errorf("write values of deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
}

func valuesSecret(deployment *fleet.BundleDeployment, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name},
		Type:       fleet.DeploymentValuesSecretType,
		Data:       data,
	}
}

// deleteValues deletes the Secret of a name if it is one of ours, of the given type.
func (r *Reconciler) deleteValues(ctx context.Context, key types.NamespacedName, kind corev1.SecretType) error {
	var secret corev1.Secret
	err := r.Reader.Get(ctx, key, &secret)
	if err == nil && secret.Type == kind {
		err = r.Client.Delete(ctx, &secret, client.Preconditions{UID: &secret.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete values %s: %w", key, err)
	}
	return nil
}

// currentValues returns the values a deployment runs with, which stay while others are staged. Without them
// nothing is written: an empty read must not take values away.
func (r *Reconciler) currentValues(ctx context.Context, deployment *fleet.BundleDeployment) ([]byte, error) {
	var secret corev1.Secret
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(deployment), &secret)
	if apierrors.IsNotFound(err) {
		return nil, fault.New(fault.Stalled, target.ReasonValuesMissing,
			"the values that deployment %s/%s runs with are gone, so that no others are staged; it gets new ones when the rollout reaches it",
			deployment.Namespace, deployment.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("read values of deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return secret.Data[target.ValuesKey], nil
}
