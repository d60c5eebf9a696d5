package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	contentstore "github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/bundles"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/progress"
	"github.com/fairlead-dev/fairlead/pkg/policy/reader"
)

// restrict completes the spec by what the rules of the namespace say, and keeps what they forbid. The spec is
// changed in memory only: it belongs to people.
func (r *Reconciler) restrict(ctx context.Context, repo *fleet.GitRepo, known *progress.Entry) error {
	rules, err := reader.Rules(ctx, r.Client, repo.Namespace)
	if err != nil {
		return err
	}
	repo.Spec, known.Denied = rules.GitRepo(repo.Spec)
	return nil
}

// look resolves the commit when it is time to, and keeps what it found.
func (r *Reconciler) look(ctx context.Context, repo *fleet.GitRepo, known *progress.Entry) {
	now := r.Now()
	said := progress.Announcement{Commit: repo.Status.WebhookCommit, At: repo.Status.LastWebhookTime.Time}
	if announced := known.Hear(said, now); !known.LookDue(repo, announced, now) {
		return
	}
	var commit string
	source, err := r.gitSource(ctx, repo)
	if err == nil {
		commit, err = r.Git.Resolve(ctx, source, known.MaxAge(repo, now))
	}
	known.Looked(repo, commit, err, now, r.Jitter())
}

// read makes the stored Bundles what the seen commit says, unless they are already.
func (r *Reconciler) read(ctx context.Context, repo *fleet.GitRepo, known *progress.Entry) {
	if !known.HasSeen(repo) {
		known.ReadErr = nil // it was about another source
		return
	}
	key, now := progress.KeyOf(repo, known.Seen), r.Now()
	if known.HasApplied(key) && r.intact(ctx, repo, known, now) {
		known.Back()
		return
	}
	if !known.ReadDue(key, now) {
		return
	}
	applied, warnings, err := r.apply(ctx, repo, known.Seen)
	if err != nil {
		known.FailedToRead(key, warnings, err, r.Now())
		return
	}
	known.Stored(progress.Applied{Key: key, Bundles: applied, Warnings: warnings, At: r.Now()})
}

// intact says that nobody touched what the last read stored. What cannot be told counts as intact: an error
// must not cause writes.
func (r *Reconciler) intact(ctx context.Context, repo *fleet.GitRepo, known *progress.Entry, now time.Time) bool {
	if known.Settling(now) {
		return true
	}
	stored, err := r.bundles.List(ctx, repo.Namespace)
	return err != nil || bundles.Intact(bundles.Ours(repo.Name, stored), known.Applied.Bundles)
}

// apply reads a commit and stores its Bundles. It returns the digests of all of them by name.
func (r *Reconciler) apply(ctx context.Context, repo *fleet.GitRepo, commit string) (map[string]string, []bundle.Warning, error) {
	source, err := r.open(ctx, repo, commit)
	if err != nil {
		return nil, nil, err
	}
	defer source.end()
	want, result, err := source.wanted(ctx)
	if err != nil {
		return nil, warningsOf(result), err
	}
	existing, err := r.bundles.List(ctx, repo.Namespace)
	if err != nil {
		return nil, result.Warnings, err
	}
	todo, err := bundles.Compare(repo.Name, want, existing, result.Complete())
	if err != nil {
		return nil, result.Warnings, err
	}
	if len(todo.Delete) > 0 {
		if err := r.confirm(ctx, repo); err != nil {
			return nil, result.Warnings, err
		}
	}
	written, err := r.bundles.Execute(ctx, todo)
	if err != nil {
		return nil, result.Warnings, err
	}
	return bundles.Held(bundles.Ours(repo.Name, existing), todo, written), result.Warnings, nil
}

// confirm returns an error unless the API server has the GitRepo as it was read here: what a newer version of
// it wants must not be deleted, nor what another GitRepo of the same name owns.
func (r *Reconciler) confirm(ctx context.Context, repo *fleet.GitRepo) error {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(fleet.GroupVersion.WithKind("GitRepo"))
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(repo), now)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read gitrepo %s/%s: %w", repo.Namespace, repo.Name, err)
	case err != nil || now.UID != repo.UID || now.Generation != repo.Generation || !maps.Equal(now.Labels, repo.Labels) ||
		now.DeletionTimestamp.IsZero() != repo.DeletionTimestamp.IsZero():
		return fault.New(fault.Transient, "CacheBehind", "nothing is deleted: gitrepo %s/%s has changed meanwhile", repo.Namespace, repo.Name)
	}
	return nil
}

// reading is a commit that is being read.
type reading struct {
	bundles *bundle.Reading
	access  *registry.Access
	close   []func()
}

// end lets go of what is read from.
func (r *reading) end() {
	for _, end := range slices.Backward(r.close) {
		end()
	}
}

// open begins to read a commit. The caller ends it.
func (r *Reconciler) open(ctx context.Context, repo *fleet.GitRepo, commit string) (_ *reading, err error) {
	opened := &reading{}
	defer func() {
		if err != nil {
			opened.end()
		}
	}()
	source, err := r.gitSource(ctx, repo)
	if err != nil {
		return nil, err
	}
	tree, err := r.Git.Checkout(ctx, source, commit)
	if err != nil {
		return nil, err
	}
	opened.close = append(opened.close, func() { _ = tree.Close() })
	charts, err := r.charts(ctx, repo)
	if err != nil {
		return nil, err
	}
	opened.close = append(opened.close, charts.Close)
	opened.access, err = r.Keeper.Access(ctx, repo.Namespace, repo.Spec.OCIRegistrySecret)
	if err != nil {
		return nil, err
	}
	opened.bundles, err = bundle.Open(ctx, tree, request(repo, commit), charts)
	return opened, err
}

// keptWhole is how much of the Bundles of one commit stays in memory between reading and writing, in bytes. What
// is beyond is read once more if it has to be written.
const keptWhole = 8 << 20

// wanted makes the Bundles of the commit, one at a time.
func (r *reading) wanted(ctx context.Context) ([]bundles.Wanted, *bundle.Result, error) {
	var want []bundles.Wanted
	var problems []error
	kept := 0
	result, err := r.bundles.Each(ctx, func(made bundle.Bundle) error {
		name := made.Object.Name
		one, err := r.detach(made)
		if err != nil {
			problems = append(problems, err)
			return nil
		}
		if size := one.Size(); kept+size <= keptWhole {
			kept += size
		} else {
			one = one.Named(func(ctx context.Context) (bundles.Wanted, error) {
				again, err := r.bundles.Again(ctx, name)
				if err != nil {
					return bundles.Wanted{}, err
				}
				return r.detach(*again)
			})
		}
		want = append(want, one)
		return nil
	})
	if err != nil {
		return nil, result, err
	}
	sortWanted(want)
	return want, result, errors.Join(problems...)
}

// detach says where the files of a Bundle go.
func (r *reading) detach(made bundle.Bundle) (bundles.Wanted, error) {
	// The bundle controller needs it, and would have to write the bundle once more.
	made.Object.Finalizers = []string{fleet.BundleFinalizer}
	files, err := contentstore.Detach(made.Object, r.access)
	if err != nil {
		return bundles.Wanted{}, err
	}
	summary, err := content.Summarize(made.Object.Spec)
	return bundles.Wanted{Bundle: made.Object, Values: made.Values, Files: files, Summary: summary}, err
}

func sortWanted(want []bundles.Wanted) {
	slices.SortFunc(want, func(a, b bundles.Wanted) int { return cmp.Compare(a.Bundle.Name, b.Bundle.Name) })
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

func warningsOf(result *bundle.Result) []bundle.Warning {
	if result == nil {
		return nil
	}
	return result.Warnings
}
