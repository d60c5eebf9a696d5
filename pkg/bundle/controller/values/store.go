package values

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cached"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// Options are what a Store works with. All must be set.
type Options struct {
	// Client writes Secrets.
	Client client.Client
	// Reader reads them from the API server.
	Reader client.Reader
	// Names knows which Secrets with values of deployments there are, from a cache.
	Names client.Reader
}

// Store reads and writes the Secrets with values of Bundles and of deployments. Make it with New.
type Store struct {
	options Options
	newest  cache
}

// New returns a Store that keeps no values yet.
func New(options Options) *Store {
	return &Store{options: options}
}

// Inline returns a bundle with its Helm values in place. That they do not exist is an error of class Waiting. Values of
// the last hash are kept, so that a pass for a status event reads no Secret.
func (s *Store) Inline(ctx context.Context, bundle *fleet.Bundle) (*fleet.Bundle, error) {
	if bundle.Spec.ValuesHash == "" {
		return bundle, nil
	}
	key := client.ObjectKeyFromObject(bundle)
	if data, ok := s.newest.get(key, bundle.Spec.ValuesHash); ok {
		return target.Inline(bundle, data)
	}
	var secret corev1.Secret
	err := s.options.Reader.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		return nil, fault.New(fault.Waiting, target.ReasonValuesMissing, "the Secret %s with the bundle's values does not exist", key)
	}
	if err != nil {
		return nil, fmt.Errorf("read values of bundle %s: %w", key, err)
	}
	inlined, err := target.Inline(bundle, secret.Data)
	if err == nil {
		s.newest.put(key, bundle.Spec.ValuesHash, secret.Data)
	}
	return inlined, err
}

// Forget drops the values that are kept of a bundle.
func (s *Store) Forget(bundle types.NamespacedName) { s.newest.drop(bundle) }

// Needed says that a deployment has values.
func Needed(deployment *fleet.BundleDeployment) bool {
	return deployment.Spec.ValuesHash != "" && deployment.DeletionTimestamp.IsZero()
}

// Awaited says that the agent found no values, or others than those of the deployment.
func Awaited(deployment *fleet.BundleDeployment) bool {
	deployed := status.Find(deployment.Status.Conditions, fleet.ConditionDeployed)
	return deployed != nil && deployed.Reason == fleet.ReasonWaitingForValues
}

// Missing returns the deployments ("namespace/name") whose values are gone or another version's. What
// the cache does not show, or an agent complains about, is asked from the API server: it may have been
// written a moment ago.
func (s *Store) Missing(ctx context.Context, deployments []*fleet.BundleDeployment) (map[string]bool, error) {
	missing := map[string]bool{}
	for _, deployment := range deployments {
		if !Needed(deployment) {
			continue
		}
		key := client.ObjectKeyFromObject(deployment)
		look := s.gone
		if Awaited(deployment) {
			look = func(ctx context.Context, key types.NamespacedName) (bool, error) {
				return s.differ(ctx, key, deployment.Spec.ValuesHash)
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

func (s *Store) differ(ctx context.Context, key types.NamespacedName, hash string) (bool, error) {
	var secret corev1.Secret
	if err := s.options.Reader.Get(ctx, key, &secret); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	return content.DeploymentValuesHash(secret.Data[target.ValuesKey], secret.Data[target.StagedValuesKey]) != hash, nil
}

func (s *Store) gone(ctx context.Context, key types.NamespacedName) (bool, error) {
	for _, reader := range []client.Reader{s.options.Names, s.options.Reader} {
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

// Create stores the values of a deployment that may be somebody else's in the Secret of its name. It returns the API
// server's AlreadyExists when there is one.
func (s *Store) Create(ctx context.Context, deployment *fleet.BundleDeployment, data map[string][]byte) error {
	return s.options.Client.Create(ctx, secretOf(deployment, data))
}

// Replace stores the values of a deployment that is known to be ours over those that are in the Secret of its name.
func (s *Store) Replace(ctx context.Context, deployment *fleet.BundleDeployment, data map[string][]byte) error {
	return s.options.Client.Update(ctx, secretOf(deployment, data))
}

// Write stores the values of a deployment that is known to be ours in the Secret of its name; nil stands for none.
func (s *Store) Write(ctx context.Context, deployment *fleet.BundleDeployment, data map[string][]byte) error {
	if data == nil {
		return nil
	}
	err := s.Create(ctx, deployment, data)
	if apierrors.IsAlreadyExists(err) {
		err = s.Replace(ctx, deployment, data)
	}
	if err != nil {
		return fmt.Errorf("write values of deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
}

func secretOf(deployment *fleet.BundleDeployment, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name},
		Type:       fleet.DeploymentValuesSecretType,
		Data:       data,
	}
}

// Delete deletes the Secret of a name if it is one of ours, of the given type.
func (s *Store) Delete(ctx context.Context, key types.NamespacedName, kind corev1.SecretType) error {
	var secret corev1.Secret
	err := s.options.Reader.Get(ctx, key, &secret)
	if err == nil && secret.Type == kind {
		err = s.options.Client.Delete(ctx, &secret, client.Preconditions{UID: &secret.UID})
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete values %s: %w", key, err)
	}
	return nil
}

// Current returns the values a deployment runs with, which stay while others are staged. Without them
// nothing is written: an empty read must not take values away.
func (s *Store) Current(ctx context.Context, deployment *fleet.BundleDeployment) ([]byte, error) {
	var secret corev1.Secret
	err := s.options.Reader.Get(ctx, client.ObjectKeyFromObject(deployment), &secret)
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
