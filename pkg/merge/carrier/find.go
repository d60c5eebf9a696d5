package carrier

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/merge/view"
)

// Find reads a deployment from the API server, whatever carries it. That nothing does is the error of the read of
// its own object.
func Find(ctx context.Context, reader client.Reader, key types.NamespacedName) (*fleet.BundleDeployment, error) {
	var alone fleet.BundleDeployment
	missing := reader.Get(ctx, key, &alone)
	if missing == nil && !merge.IsMerged(&alone) {
		return &alone, nil
	}
	if missing == nil {
		missing = apierrors.NewNotFound(fleet.GroupVersion.WithResource("bundledeployments").GroupResource(), key.Name)
	}
	if !apierrors.IsNotFound(missing) {
		return nil, missing
	}
	var list fleet.BundleDeploymentList
	if err := reader.List(ctx, &list, client.InNamespace(key.Namespace)); err != nil {
		return nil, err
	}
	if found := view.In(list.Items, key); found != nil {
		return found, nil
	}
	return nil, missing
}

// Left says whether the API server has an object that carries a deployment of a bundle. A merged one is looked into:
// somebody may have taken the part out and left its mark.
func Left(ctx context.Context, reader client.Reader, bundle types.NamespacedName) (bool, error) {
	var list fleet.BundleDeploymentList
	err := reader.List(ctx, &list, client.Limit(1), client.MatchingLabels{
		fleet.BundleLabel: bundle.Name, fleet.BundleNamespaceLabel: bundle.Namespace,
	})
	for next := ""; err == nil && len(list.Items) == 0; next = list.Continue {
		list = fleet.BundleDeploymentList{}
		err = reader.List(ctx, &list, client.Limit(1), client.Continue(next), client.HasLabels{merge.BundleMark(bundle.Namespace, bundle.Name)})
		list.Items = slices.DeleteFunc(list.Items, func(object fleet.BundleDeployment) bool {
			_, carries := object.Spec.Parts[bundle.Name]
			return !carries
		})
		if list.Continue == "" {
			break
		}
	}
	if err != nil {
		return true, fmt.Errorf("list deployments of bundle %s: %w", bundle, err)
	}
	return len(list.Items) > 0, nil
}

// UserOf says whether the API server has an object that carries a deployment which refers to a Content. Each of the two
// questions makes the API server look through all objects; whether there may be merged ones the caller says.
func UserOf(ctx context.Context, reader client.Reader, content string, merged bool) (bool, error) {
	selectors := []client.ListOption{client.MatchingLabels{fleet.ContentLabel: content}}
	if merged {
		selectors = append(selectors, client.HasLabels{merge.ContentMark(content)})
	}
	for _, selector := range selectors {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeploymentList"))
		if err := reader.List(ctx, list, client.Limit(1), selector); err != nil {
			return true, fmt.Errorf("list deployments: %w", err)
		}
		if len(list.Items) > 0 {
			return true, nil
		}
	}
	return false, nil
}
