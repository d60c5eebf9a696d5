package helm

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
)

// copiedKinds are the kinds that are copied from the hub.
var copiedKinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "configmaps"},
}

// copy writes the objects that come along with a deployment, before anything reads them, and removes
// those of earlier deployments that no longer do.
func (d *Deployer) copy(ctx context.Context, identity *access.Identity, request Request, claim apply.Claim) error {
	options, bundleID := request.Input.Options, request.Input.BundleID
	wanted := map[manifest.Key]bool{}
	for _, object := range request.Copies {
		object.SetNamespace(render.ReleaseNamespace(options))
		mark(object, claim)
		marks := object.GetLabels()
		marks[fleet.DownstreamCopyLabel] = bundleID
		object.SetLabels(marks)
		manifest.Concede(object)
		if _, err := identity.Writer.Apply(ctx, object, apply.Options{Claim: claim}); err != nil {
			return fmt.Errorf("copy from the hub: %w", err)
		}
		wanted[manifest.KeyOf(object)] = true
	}
	if len(wanted) == 0 && !request.CopiedBefore {
		return nil // to look for copies of every bundle would cost the API server more than it is worth
	}
	return d.removeCopies(ctx, identity, bundleID, render.ReleaseNamespace(options), claim, wanted)
}

// removeCopies deletes a bundle's copies in a namespace that are not wanted.
func (d *Deployer) removeCopies(ctx context.Context, identity *access.Identity, bundleID, namespace string, claim apply.Claim, wanted map[manifest.Key]bool) error {
	selector := labels.Set{fleet.DownstreamCopyLabel: bundleID, fleet.SetHashLabel: claim.SetHash}.String()
	for _, kind := range copiedKinds {
		list, err := identity.Dynamic.Resource(kind).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return fmt.Errorf("list copies of %s: %w", bundleID, err)
		}
		for i := range list.Items {
			if err := removeCopy(ctx, identity, &list.Items[i], claim, wanted); err != nil {
				return err
			}
		}
	}
	return nil
}

func removeCopy(ctx context.Context, identity *access.Identity, object *unstructured.Unstructured, claim apply.Claim, wanted map[manifest.Key]bool) error {
	if wanted[manifest.KeyOf(object)] {
		return nil
	}
	_, err := identity.Writer.Delete(ctx, object, claim, nil, metav1.DeletePropagationBackground)
	return err
}
