package copies

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
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// kinds that are copied from the hub.
var kinds = []schema.GroupVersionResource{
	{Version: "v1", Resource: "secrets"}, {Version: "v1", Resource: "configmaps"},
}

// Set is the copies of one bundle in the namespace of its release.
type Set struct {
	Identity            *access.Identity
	Claim               ownership.Claim
	BundleID, Namespace string
}

// Write writes the copies that are wanted now. Before says that an earlier deployment may have left some; of those it
// removes what is not wanted any more.
func (s Set) Write(ctx context.Context, copies []*unstructured.Unstructured, before bool) error {
	wanted := map[manifest.Key]bool{}
	for _, object := range copies {
		object.SetNamespace(s.Namespace)
		s.Claim.Mark(object)
		marks := object.GetLabels()
		marks[fleet.DownstreamCopyLabel] = s.BundleID
		object.SetLabels(marks)
		manifest.Concede(object)
		if _, err := s.Identity.Writer.Apply(ctx, object, apply.Options{Claim: s.Claim}); err != nil {
			return fmt.Errorf("copy from the hub: %w", err)
		}
		wanted[manifest.KeyOf(object)] = true
	}
	if len(wanted) == 0 && !before {
		return nil // to look for copies of every bundle would cost the API server more than it is worth
	}
	return s.prune(ctx, wanted)
}

// Remove deletes all copies.
func (s Set) Remove(ctx context.Context) error { return s.prune(ctx, nil) }

// prune deletes the copies that are not wanted.
func (s Set) prune(ctx context.Context, wanted map[manifest.Key]bool) error {
	selector := labels.Set{fleet.DownstreamCopyLabel: s.BundleID, fleet.SetHashLabel: s.Claim.SetHash}.String()
	for _, kind := range kinds {
		list, err := s.Identity.Dynamic.Resource(kind).Namespace(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return fmt.Errorf("list copies of %s: %w", s.BundleID, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if wanted[manifest.KeyOf(object)] {
				continue
			}
			if _, err := s.Identity.Writer.Delete(ctx, object, s.Claim, nil, metav1.DeletePropagationBackground); err != nil {
				return err
			}
		}
	}
	return nil
}
