package controller

import (
	"context"
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
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
	commit, err := r.sources.Resolve(ctx, repo, known.MaxAge(repo, now))
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
	source, err := r.sources.Open(ctx, repo, commit)
	if err != nil {
		return nil, nil, err
	}
	defer source.End()
	want, result, err := source.Wanted(ctx)
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

func warningsOf(result *bundle.Result) []bundle.Warning {
	if result == nil {
		return nil
	}
	return result.Warnings
}
