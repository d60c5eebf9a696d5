package ledger

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// pageSize is how many objects are read at a time.
const pageSize = 1000

// CatchUp notes what another process has written of the bundles that come to this one, as if this one had. The
// next pass over each waits until the cache shows it: planned on what was before, a rollout would go beyond its
// limits.
func (l *Ledger) CatchUp(ctx context.Context, mine func(namespace, name string) bool) error {
	marked, err := l.marked(ctx, mine)
	if err != nil {
		return err
	}
	type pair struct {
		bundle    types.NamespacedName
		namespace string
	}
	there := map[pair]bool{}
	note := func(key types.NamespacedName, item *metav1.PartialObjectMetadata) {
		there[pair{key, item.Namespace}] = true
		l.Wrote(key, item.Namespace, item.ResourceVersion)
	}
	err = l.metadata(ctx, "BundleDeployment", func(item *metav1.PartialObjectMetadata) {
		if item.Labels[fleet.MergedLabel] != "" {
			for label := range item.Labels {
				if key, known := marked[label]; known {
					note(key, item)
				}
			}
			return
		}
		key := target.BundleOf(item.Labels)
		if mine(key.Namespace, key.Name) {
			note(key, item)
		}
	})
	if err != nil {
		return err
	}
	shown, err := l.options.Deployments.All(ctx)
	if err != nil {
		return fmt.Errorf("list deployments: %w", err)
	}
	for _, item := range shown {
		key := target.BundleOf(item.Labels)
		if mine(key.Namespace, key.Name) && !there[pair{key, item.Namespace}] {
			l.Removed(key, item.Namespace)
		}
	}
	return l.metadata(ctx, "Bundle", func(item *metav1.PartialObjectMetadata) {
		if mine(item.Namespace, item.Name) {
			l.WroteOwn(client.ObjectKeyFromObject(item), item.ResourceVersion)
		}
	})
}

// marked returns the bundles that come to this process by the marks of merged objects.
func (l *Ledger) marked(ctx context.Context, mine func(namespace, name string) bool) (map[string]types.NamespacedName, error) {
	var bundles fleet.BundleList
	if err := l.options.Client.List(ctx, &bundles, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list bundles: %w", err)
	}
	marked := map[string]types.NamespacedName{}
	for i := range bundles.Items {
		if key := client.ObjectKeyFromObject(&bundles.Items[i]); mine(key.Namespace, key.Name) {
			marked[merge.BundleMark(key.Namespace, key.Name)] = key
		}
	}
	return marked, nil
}

// metadata reads the metadata of all objects of a kind from the API server, page by page.
func (l *Ledger) metadata(ctx context.Context, kind string, each func(*metav1.PartialObjectMetadata)) error {
	list := &metav1.PartialObjectMetadataList{}
	for {
		token := list.Continue
		list = &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(fleet.GroupVersion.WithKind(kind + "List"))
		if err := l.options.Reader.List(ctx, list, client.Limit(pageSize), client.Continue(token)); err != nil {
			return fmt.Errorf("list the metadata of every %s: %w", kind, err)
		}
		for i := range list.Items {
			each(&list.Items[i])
		}
		if list.Continue == "" {
			return nil
		}
	}
}
