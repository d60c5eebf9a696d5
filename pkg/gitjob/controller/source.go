package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git"
)

// look resolves the commit when it is time to, and keeps what it found.
func (r *Reconciler) look(ctx context.Context, repo *fleet.GitRepo, known *progress) {
	now := r.Now()
	said := announcement{commit: repo.Status.WebhookCommit, at: repo.Status.LastWebhookTime.Time}
	if !known.hear(said, now) && now.Before(known.nextLook) && known.generation == repo.Generation {
		return
	}
	source, err := r.gitSource(ctx, repo)
	if err == nil {
		known.seen, err = r.resolve(ctx, source, repo, known)
	}
	known.lookErr, known.generation = err, repo.Generation
	known.sawAnnounced(now)
	known.nextLook = now.Add(r.pause(repo, known))
}

// resolve asks for a listing that is younger than the announcement or the interval, and for a new one
// when the spec changed.
func (r *Reconciler) resolve(ctx context.Context, source git.Source, repo *fleet.GitRepo, known *progress) (string, error) {
	maxAge := interval(repo)
	switch {
	case known.awaited:
		maxAge = announcementAge
	case known.generation != repo.Generation:
		maxAge = 0
	}
	commit, err := r.Git.Resolve(ctx, source, maxAge)
	if err != nil {
		return known.seen, err
	}
	return commit, nil
}

// pause is how long to wait before the next look.
func (r *Reconciler) pause(repo *fleet.GitRepo, known *progress) time.Duration {
	if known.awaited {
		return announcementRetry
	}
	period := interval(repo)
	if repo.Spec.DisablePolling && known.lookErr == nil {
		period = notAgain
	}
	return period + time.Duration(r.Jitter()*float64(period)/10)
}

// notAgain is the pause where polling is off: a change of the spec or a webhook ends it.
const notAgain = 100 * 365 * 24 * time.Hour

// interval is the time between two looks: what the spec says, 15 seconds, or an hour once webhooks come.
func interval(repo *fleet.GitRepo) time.Duration {
	if repo.Spec.PollingInterval != nil && repo.Spec.PollingInterval.Duration > 0 {
		return repo.Spec.PollingInterval.Duration
	}
	if repo.Status.WebhookCommit != "" {
		return time.Hour
	}
	return 15 * time.Second
}

// read makes the stored Bundles what the seen commit says, unless they are already.
func (r *Reconciler) read(ctx context.Context, repo *fleet.GitRepo, known *progress) {
	key := keyOf(repo, known.seen)
	if known.seen == "" || r.upToDate(ctx, repo, known, key) {
		return
	}
	if known.readErr != nil && fault.NeedsPerson(known.readErr) && known.failed == key {
		return
	}
	applied, warnings, err := r.apply(ctx, repo, known.seen)
	known.readErr, known.failed, known.warnings = err, key, warnings
	if err == nil {
		known.applied = &appliedSource{key: key, bundles: applied, at: r.Now()}
	}
}

func keyOf(repo *fleet.GitRepo, commit string) sourceKey {
	return sourceKey{commit: commit, generation: repo.Generation, labels: fmt.Sprint(repo.Labels)}
}

// upToDate says that the last read was of the same source, worked, and that nobody touched its Bundles.
func (r *Reconciler) upToDate(ctx context.Context, repo *fleet.GitRepo, known *progress, key sourceKey) bool {
	if known.applied == nil || known.applied.key != key {
		return false
	}
	if r.Now().Sub(known.applied.at) < settleTime {
		return true // the cache may not show our own writes yet
	}
	stored, err := r.stored(ctx, repo)
	if err != nil {
		return true // the cache will tell again; an error must not cause writes
	}
	own := 0
	for name, object := range stored {
		if object.Labels[fleet.RepoLabel] != repo.Name || !object.DeletionTimestamp.IsZero() {
			continue
		}
		summary, _ := content.SummaryOf(object)
		if known.applied.bundles[name] != summary.SpecDigest {
			return false
		}
		own++
	}
	return own == len(known.applied.bundles)
}

// apply reads a commit and stores its Bundles. It returns the digests of all of them by name.
func (r *Reconciler) apply(ctx context.Context, repo *fleet.GitRepo, commit string) (map[string]string, []bundle.Warning, error) {
	want, result, err := r.wantedBundles(ctx, repo, commit)
	if err != nil {
		return nil, warningsOf(result), err
	}
	existing, err := r.stored(ctx, repo)
	if err != nil {
		return nil, result.Warnings, err
	}
	todo, err := planBundles(repo.Name, want, existing, result.Complete())
	if err != nil {
		return nil, result.Warnings, err
	}
	if err := r.execute(ctx, todo); err != nil {
		return nil, result.Warnings, err
	}
	return r.digests(repo, want, existing, todo), result.Warnings, nil
}

// digests lists what the hub holds for the repository once the plan is carried out. Bundles that stay
// because a path matched nothing are among them.
func (r *Reconciler) digests(repo *fleet.GitRepo, want []wanted, existing map[string]*fleet.Bundle, done plan) map[string]string {
	held := map[string]string{}
	for name, object := range existing {
		if object.Labels[fleet.RepoLabel] == repo.Name && object.DeletionTimestamp.IsZero() {
			summary, _ := content.SummaryOf(object)
			held[name] = summary.SpecDigest
		}
	}
	for _, removed := range done.delete {
		delete(held, removed.Name)
	}
	for _, one := range want {
		held[one.bundle.Name] = one.summary.SpecDigest
	}
	return held
}

func (r *Reconciler) wantedBundles(ctx context.Context, repo *fleet.GitRepo, commit string) ([]wanted, *bundle.Result, error) {
	source, err := r.gitSource(ctx, repo)
	if err != nil {
		return nil, nil, err
	}
	tree, err := r.Git.Checkout(ctx, source, commit)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = tree.Close() }()
	charts, err := r.charts(ctx, repo)
	if err != nil {
		return nil, nil, err
	}
	defer charts.Close()
	result, err := bundle.Read(ctx, tree, request(repo, commit), charts)
	if err == nil {
		err = result.Err()
	}
	if err != nil {
		return nil, result, err
	}
	var want []wanted
	var problems []error
	for _, made := range result.Bundles {
		// The bundle controller needs it, and would have to write the bundle once more.
		made.Object.Finalizers = []string{fleet.BundleFinalizer}
		summary, err := content.Summarize(made.Object.Spec)
		problems = append(problems, err)
		want = append(want, wanted{bundle: made.Object, values: made.Values, summary: summary})
	}
	sortWanted(want)
	return want, result, errors.Join(problems...)
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

// stored lists the Bundles of the GitRepo's namespace by name, trimmed, from the cache.
func (r *Reconciler) stored(ctx context.Context, repo *fleet.GitRepo) (map[string]*fleet.Bundle, error) {
	var list fleet.BundleList
	if err := r.Client.List(ctx, &list, client.InNamespace(repo.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list bundles in %s: %w", repo.Namespace, err)
	}
	found := make(map[string]*fleet.Bundle, len(list.Items))
	for i := range list.Items {
		found[list.Items[i].Name] = &list.Items[i]
	}
	return found, nil
}
