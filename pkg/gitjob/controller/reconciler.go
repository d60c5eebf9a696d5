package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fetch"
	contentstore "github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/bundles"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/progress"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/sources"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
	"github.com/fairlead-dev/fairlead/pkg/shard"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// Rollups gives the numbers of a GitRepo's deployments.
type Rollups interface {
	// GitRepo returns what is counted from deployments; ok is false until all were counted.
	GitRepo(namespace, name string) (repo feed.Repo, ok bool)
	// Telling asks whether numbers that are read afterwards may be told.
	Telling(kind tally.ParentKind, namespace, name string) feed.Telling
	// Changed wakes an object up, soon or together with what changes at its deployments.
	Changed(kind tally.ParentKind, namespace, name string)
}

// Reconciler follows GitRepos. All fields but the private ones must be set.
type Reconciler struct {
	// Client writes, and reads GitRepos and Bundles from the cache.
	Client client.Client
	// Reader reads from the API server: Secrets, and Bundles with their files.
	Reader client.Reader
	// Git looks at repositories.
	Git sources.Git
	// Fetcher gets charts that are not in the repository.
	Fetcher *fetch.Fetcher
	// Keeper stores files that Bundles do not hold themselves.
	Keeper  *contentstore.Keeper
	Rollups Rollups
	Events  events.EventRecorder
	// HostKeys returns the SSH host keys trusted for repositories whose Secret names none.
	HostKeys func(ctx context.Context) (credential.HostKeys, error)
	// Shards are those this process works on.
	Shards *shard.Shards
	Now    func() time.Time
	// Jitter returns a number in [0, 1).
	Jitter func() float64

	book    progress.Book
	sources *sources.Opener
	bundles *bundles.Store
}

// Reconcile makes one pass over a GitRepo: look, read, plan and execute, observe, one status patch.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var repo fleet.GitRepo
	if err := r.Client.Get(ctx, request.NamespacedName, &repo); err != nil {
		if apierrors.IsNotFound(err) {
			r.book.Forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !repo.DeletionTimestamp.IsZero() {
		return r.delete(ctx, &repo)
	}
	known := r.book.Open(request.NamespacedName, repo.UID)
	if known.Behind(repo.ResourceVersion) {
		return reconcile.Result{RequeueAfter: progress.ShortestPass}, nil
	}
	if err := r.ensureFinalizer(ctx, &repo, known); err != nil {
		return reconcile.Result{}, err
	}
	if repo.Status.ObservedGeneration == 0 {
		if err := r.writeStatus(ctx, &repo, known, begin(&repo, r.Now())); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.restrict(ctx, &repo, known); err != nil {
		return reconcile.Result{}, err
	}
	if known.Denied == nil {
		r.look(ctx, &repo, known)
		r.read(ctx, &repo, known)
	}
	if ctx.Err() != nil {
		return reconcile.Result{}, ctx.Err() // what was found out is that we were told to stop
	}
	r.announce(&repo, known)
	return r.report(ctx, &repo, known)
}

// report writes what the pass found out, once everything is counted; until then a status would be wrong.
func (r *Reconciler) report(ctx context.Context, repo *fleet.GitRepo, known *progress.Entry) (reconcile.Result, error) {
	telling := r.Rollups.Telling(tally.KindGitRepo, repo.Namespace, repo.Name)
	rollup, counted := r.Rollups.GitRepo(repo.Namespace, repo.Name)
	if !counted {
		return reconcile.Result{RequeueAfter: uncountedRetry}, nil
	}
	stored, err := r.bundles.List(ctx, repo.Namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	seen := observation{repo: repo, known: known, rollup: rollup, own: bundles.Ours(repo.Name, stored)}
	if err := r.tell(ctx, repo, known, observe(seen, r.Now()), telling); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: known.NextPass(r.Now())}, nil
}

// tell writes the status when it differs. What is said of deployments alone waits for its time.
func (r *Reconciler) tell(ctx context.Context, repo *fleet.GitRepo, known *progress.Entry, next fleet.GitRepoStatus, telling feed.Telling) error {
	switch {
	case equality.Semantic.DeepEqual(repo.Status, next):
		telling.Nothing()
		return nil
	case !numbersOnly(repo.Status, next):
		telling.Must()
	case !telling.May():
		return nil
	}
	return r.writeStatus(ctx, repo, known, next)
}

// uncountedRetry is the pause until a status is tried again after a start.
const uncountedRetry = time.Second

func (r *Reconciler) ensureFinalizer(ctx context.Context, repo *fleet.GitRepo, known *progress.Entry) error {
	before := repo.DeepCopy()
	if !controllerutil.AddFinalizer(repo, fleet.GitRepoFinalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, repo, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add finalizer to gitrepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	known.Version = repo.ResourceVersion
	return nil
}

// delete removes the Bundles and lets go once the last one is gone; their deletion brings it back here.
func (r *Reconciler) delete(ctx context.Context, repo *fleet.GitRepo) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(repo, fleet.GitRepoFinalizer) {
		return reconcile.Result{}, nil
	}
	// A cache that is behind may show one that is gone, whose name another one has by now.
	if err := r.confirm(ctx, repo); err != nil {
		return reconcile.Result{}, err
	}
	left, err := r.bundles.RemoveAll(ctx, repo)
	if left > 0 || err != nil {
		return reconcile.Result{}, err
	}
	before := repo.DeepCopy()
	controllerutil.RemoveFinalizer(repo, fleet.GitRepoFinalizer)
	if err := r.Client.Patch(ctx, repo, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("remove finalizer from gitrepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	r.book.Forget(client.ObjectKeyFromObject(repo))
	return reconcile.Result{}, nil
}

// writeStatus patches the status when it differs.
func (r *Reconciler) writeStatus(ctx context.Context, repo *fleet.GitRepo, known *progress.Entry, next fleet.GitRepoStatus) error {
	if equality.Semantic.DeepEqual(repo.Status, next) {
		return nil
	}
	before := repo.DeepCopy()
	repo.Status = next
	if err := r.Client.Status().Patch(ctx, repo, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status of gitrepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	known.Version = repo.ResourceVersion
	return nil
}
