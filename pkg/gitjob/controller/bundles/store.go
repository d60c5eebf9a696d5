package bundles

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	contentstore "github.com/fairlead-dev/fairlead/pkg/content/store"
)

// Store reads and writes the Bundles of GitRepos. All fields must be set.
type Store struct {
	// Client writes, and reads Bundles from the cache.
	Client client.Client
	// Reader reads from the API server: Secrets, and Bundles with their files.
	Reader client.Reader
	// Keeper stores files that Bundles do not hold themselves.
	Keeper *contentstore.Keeper
}

// List lists the Bundles of a namespace by name, trimmed, from the cache.
func (s *Store) List(ctx context.Context, namespace string) (map[string]*fleet.Bundle, error) {
	var list fleet.BundleList
	if err := s.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list bundles in %s: %w", namespace, err)
	}
	found := make(map[string]*fleet.Bundle, len(list.Items))
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	return found, nil
}

// RemoveAll deletes the Bundles of a GitRepo and returns how many there still are, by the API server, because
// the cache may not show the newest Bundles yet, and by the cache, because a list may lack some.
func (s *Store) RemoveAll(ctx context.Context, repo *fleet.GitRepo) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleList"))
	err := s.Reader.List(ctx, list, client.InNamespace(repo.Namespace), client.MatchingLabels{fleet.RepoLabel: repo.Name})
	if err != nil {
		return 0, fmt.Errorf("list bundles of gitrepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	var problems []error
	for i := range list.Items {
		if item := &list.Items[i]; item.DeletionTimestamp.IsZero() {
			bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: item.Namespace, Name: item.Name, UID: item.UID, Labels: item.Labels}}
			problems = append(problems, s.remove(ctx, bundle))
		}
	}
	cached, err := s.List(ctx, repo.Namespace)
	shown := 0
	for _, bundle := range cached {
		if bundle.Labels[fleet.RepoLabel] == repo.Name {
			shown++
		}
	}
	return max(len(list.Items), shown), errors.Join(append(problems, err)...)
}
