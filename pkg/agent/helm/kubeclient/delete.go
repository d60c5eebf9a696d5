package kubeclient

import (
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/namespace"
)

// prune deletes what was there before and is not in the target.
func (c *Client) prune(result *kube.Result, before []*unstructured.Unstructured, target kube.ResourceList) error {
	wanted := manifest.Keys(objectsOf(target))
	var gone []*unstructured.Unstructured
	for _, object := range before {
		key := manifest.KeyOf(object)
		if wanted[key] || manifest.IsHook(object) {
			continue
		}
		wanted[key] = true // once
		if c.options.Spares != nil && !c.stays(object) && c.options.Spares(key) {
			c.spared = append(c.spared, object)
			continue
		}
		gone = append(gone, object)
	}
	deleted, errs := c.deleteAll(gone, metav1.DeletePropagationBackground)
	result.Deleted = append(result.Deleted, deleted...)
	return errors.Join(errs...)
}

// Delete implements kube.Interface.
func (c *Client) Delete(list kube.ResourceList) (*kube.Result, []error) {
	return c.DeleteWithPropagationPolicy(list, metav1.DeletePropagationBackground)
}

// DeleteWithPropagationPolicy implements kube.InterfaceDeletionPropagation.
func (c *Client) DeleteWithPropagationPolicy(list kube.ResourceList, policy metav1.DeletionPropagation) (*kube.Result, []error) {
	deleted, errs := c.deleteAll(objectsOf(list), policy)
	return &kube.Result{Deleted: deleted}, errs
}

// DeleteAll deletes objects that carry the claim's mark and that nothing keeps.
func (c *Client) DeleteAll(objects []*unstructured.Unstructured) error {
	_, errs := c.deleteAll(objects, metav1.DeletePropagationBackground)
	return errors.Join(errs...)
}

// deleteAll deletes in the reverse order of creation, and keeps on when one cannot be deleted.
func (c *Client) deleteAll(objects []*unstructured.Unstructured, policy metav1.DeletionPropagation) (kube.ResourceList, []error) {
	var (
		mu      sync.Mutex
		deleted kube.ResourceList
		errs    []error
	)
	for _, phase := range manifest.Reverse(manifest.Order(objects)) {
		var group errgroup.Group
		group.SetLimit(writersAtOnce)
		for _, object := range phase {
			if c.stays(object) {
				continue
			}
			group.Go(func() error {
				_, err := c.identity.Writer.Delete(c.ctx, object, c.claim, c.options.Known, policy)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, err)
					return nil
				}
				deleted = append(deleted, &resource.Info{Client: nothingThere{}, Object: object, Namespace: object.GetNamespace(), Name: object.GetName()})
				return nil
			})
		}
		_ = group.Wait() // its functions keep their errors
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, errs...)
	return deleted, errs
}

// Failure returns what could not be deleted: Helm's uninstall tells only that there was something.
func (c *Client) Failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.failures...)
}

func (c *Client) stays(object *unstructured.Unstructured) bool {
	key := manifest.KeyOf(object)
	if c.options.Keep[key] || manifest.IsKept(object) {
		return true
	}
	switch key.GroupKind {
	case manifest.CustomResourceDefinition:
		return !c.options.DeleteDefinitions
	case manifest.Namespace:
		return namespace.IsProtected(key.Name) || key.Name == c.identity.Member().Namespace()
	}
	return false
}
