package sources

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fetch"
	contentstore "github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/store"
)

// Git looks at repositories.
type Git interface {
	// Resolve returns the commit a source stands for, from a listing that is at most maxAge old.
	Resolve(ctx context.Context, source git.Source, maxAge time.Duration) (string, error)
	// Checkout returns the tree of a commit.
	Checkout(ctx context.Context, source git.Source, commit string) (*store.Tree, error)
}

// Opener opens the sources of GitRepos. All fields must be set.
type Opener struct {
	// Reader reads Secrets from the API server.
	Reader client.Reader
	Git    Git
	// Fetcher gets charts that are not in the repository.
	Fetcher *fetch.Fetcher
	// Keeper says where files go that Bundles do not hold themselves.
	Keeper *contentstore.Keeper
	// HostKeys returns the SSH host keys trusted for repositories whose Secret names none.
	HostKeys func(ctx context.Context) (credential.HostKeys, error)
}

// Resolve returns the commit that a GitRepo stands for, from a listing that is at most maxAge old.
func (o *Opener) Resolve(ctx context.Context, repo *fleet.GitRepo, maxAge time.Duration) (string, error) {
	source, err := o.gitSource(ctx, repo)
	if err != nil {
		return "", err
	}
	return o.Git.Resolve(ctx, source, maxAge)
}

// Open begins to read a commit. The caller ends it.
func (o *Opener) Open(ctx context.Context, repo *fleet.GitRepo, commit string) (_ *Reading, err error) {
	opened := &Reading{}
	defer func() {
		if err != nil {
			opened.End()
		}
	}()
	source, err := o.gitSource(ctx, repo)
	if err != nil {
		return nil, err
	}
	tree, err := o.Git.Checkout(ctx, source, commit)
	if err != nil {
		return nil, err
	}
	opened.close = append(opened.close, func() { _ = tree.Close() })
	charts, err := o.charts(ctx, repo)
	if err != nil {
		return nil, err
	}
	opened.close = append(opened.close, charts.Close)
	opened.access, err = o.Keeper.Access(ctx, repo.Namespace, repo.Spec.OCIRegistrySecret)
	if err != nil {
		return nil, err
	}
	opened.bundles, err = bundle.Open(ctx, tree, request(repo, commit), charts)
	return opened, err
}

// request is the GitRepo's, with the labels that lead from a Bundle back to it.
func request(repo *fleet.GitRepo, commit string) bundle.Request {
	req := bundle.RequestFor(repo, commit)
	labels := map[string]string{}
	for key, value := range req.Labels {
		labels[key] = value
	}
	labels[fleet.RepoLabel] = repo.Name
	req.Labels = labels
	return req
}
