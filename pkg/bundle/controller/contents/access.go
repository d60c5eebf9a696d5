package contents

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cached"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// copiedAnnotation on a member's access says of which version of the bundle's it is a copy.
const copiedAnnotation = "fleet.cattle.io/copied-version"

// accesses are the Secrets that say where contents in registries are: one beside each Bundle, with the name
// of the contents, and a copy beside each of its deployments, where the agent may read it.
type accesses struct {
	client client.Client
	reader client.Reader
	// cached knows the metadata of these Secrets.
	cached client.Reader
}

// present returns the metadata of the Secret beside a bundle; that there is none is an error of class
// Waiting. The API server is asked what the cache does not show.
func (a *accesses) present(ctx context.Context, bundle *fleet.Bundle) (*metav1.PartialObjectMetadata, error) {
	found := cached.SecretMetadata()
	key := types.NamespacedName{Namespace: bundle.Namespace, Name: bundle.Spec.ContentsID}
	for _, reader := range []client.Reader{a.cached, a.reader} {
		err := reader.Get(ctx, key, found)
		if err == nil {
			return found, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("look for Secret %s: %w", key, err)
		}
	}
	return nil, missingContents(bundle, "the Secret %s for the registry", key.Name)
}

// Copies are those of the accesses of one bundle, each of which is read once and only when a copy is outdated.
type Copies struct {
	*accesses
	namespace string
	mutex     sync.Mutex
	read      map[string]*corev1.Secret
}

// GiveAll brings the copies of deployments that are there already up to date.
func (c *Copies) GiveAll(ctx context.Context, deployments []*fleet.BundleDeployment) error {
	var problems []error
	for _, deployment := range deployments {
		if deployment.DeletionTimestamp.IsZero() {
			problems = append(problems, c.Give(ctx, deployment))
		}
	}
	return fault.Join(problems...)
}

// Give lets the agent of a deployment read its contents, where they are in a registry.
func (c *Copies) Give(ctx context.Context, deployment *fleet.BundleDeployment) error {
	if !deployment.Spec.OCIContents {
		return nil
	}
	id, _, _ := strings.Cut(deployment.Spec.DeploymentID, ":")
	original, current := cached.SecretMetadata(), cached.SecretMetadata()
	err := c.cached.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: id}, original)
	if err == nil {
		err = c.cached.Get(ctx, types.NamespacedName{Namespace: deployment.Namespace, Name: id}, current)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("look for Secret %s: %w", id, err)
	}
	if err == nil && current.Annotations[copiedAnnotation] == versionOf(original) {
		return nil
	}
	whole, err := c.original(ctx, id)
	if whole == nil || err != nil {
		return err // it is gone with contents that a later version of the bundle replaces
	}
	if err := c.copy(ctx, whole, deployment); err != nil {
		return fmt.Errorf("give deployment %s/%s access to its contents: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
}

func versionOf(object client.Object) string {
	return string(object.GetUID()) + "/" + object.GetResourceVersion()
}

// original reads the Secret beside the bundle; nil when there is none.
func (c *Copies) original(ctx context.Context, id string) (*corev1.Secret, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if whole, known := c.read[id]; known {
		return whole, nil
	}
	whole := &corev1.Secret{}
	err := c.reader.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: id}, whole)
	if apierrors.IsNotFound(err) {
		whole, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", c.namespace, id, err)
	}
	c.read[id] = whole
	return whole, nil
}

// copy writes the copy for one member: with the credentials meant for agents, never with those for writing
// where there are others.
func (c *Copies) copy(ctx context.Context, original *corev1.Secret, deployment *fleet.BundleDeployment) error {
	access, err := registry.AccessOf(original)
	if err != nil {
		return err
	}
	made := registry.SecretFor(deployment.Namespace, original.Name, deployment.Name, access.ForAgents())
	made.Labels[fleet.BundleNamespaceLabel] = original.Namespace
	made.Annotations[copiedAnnotation] = versionOf(original)
	err = c.client.Create(ctx, made)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var current corev1.Secret
	if err := c.reader.Get(ctx, client.ObjectKeyFromObject(made), &current); err != nil {
		return err
	}
	if current.Type != made.Type {
		return fault.New(fault.Stalled, "SecretOwnedByOther", "the Secret %s/%s of type %q is in its place; remove it", current.Namespace, current.Name, current.Type)
	}
	if current.Annotations[copiedAnnotation] == made.Annotations[copiedAnnotation] && registry.SameData(current.Data, made.Data) {
		return nil // the cache was behind
	}
	current.Data, current.Labels, current.Annotations = made.Data, made.Labels, made.Annotations
	return c.client.Update(ctx, &current)
}
