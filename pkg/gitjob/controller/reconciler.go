package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fetch"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/store"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
)

// Git looks at repositories.
type Git interface {
	// Resolve returns the commit a source stands for, from a listing that is at most maxAge old.
	Resolve(ctx context.Context, source git.Source, maxAge time.Duration) (string, error)
	// Checkout returns the tree of a commit.
	Checkout(ctx context.Context, source git.Source, commit string) (*store.Tree, error)
}

// Rollups gives the numbers of a GitRepo's deployments.
type Rollups interface {
	// GitRepo returns what is counted from deployments; ok is false until all were counted.
	GitRepo(namespace, name string) (repo feed.Repo, ok bool)
}

// Reconciler follows GitRepos. All fields but the private ones must be set.
type Reconciler struct {
	// Client writes, and reads GitRepos and Bundles from the cache.
	Client client.Client
	// Reader reads from the API server: Secrets, and Bundles with their files.
	Reader client.Reader
	Git    Git
	// Fetcher gets charts that are not in the repository.
	Fetcher *fetch.Fetcher
	Rollups Rollups
	Events  events.EventRecorder
	// HostKeys returns the SSH host keys trusted for repositories whose Secret names none.
	HostKeys func(ctx context.Context) (credential.HostKeys, error)
	Now      func() time.Time
	// Jitter returns a number in [0, 1).
	Jitter func() float64

	book book
}

// Reconcile makes one pass over a GitRepo: look, read, plan and execute, observe, one status patch.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var repo fleet.GitRepo
	if err := r.Client.Get(ctx, request.NamespacedName, &repo); err != nil {
		r.book.forget(request.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !repo.DeletionTimestamp.IsZero() {
		return reconcile.Result{}, r.delete(ctx, &repo)
	}
	if err := r.ensureFinalizer(ctx, &repo); err != nil {
		return reconcile.Result{}, err
	}
	known := r.book.open(request.NamespacedName)
	if repo.Status.ObservedGeneration == 0 {
		if err := r.writeStatus(ctx, &repo, begin(&repo, r.Now())); err != nil {
			return reconcile.Result{}, err
		}
	}
	r.look(ctx, &repo, known)
	r.read(ctx, &repo, known)
	r.announce(&repo, known)
	if err := r.report(ctx, &repo, known); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: r.nextPass(known)}, nil
}

// report writes what the pass found out, once everything is counted; until then a status would be wrong.
func (r *Reconciler) report(ctx context.Context, repo *fleet.GitRepo, known *progress) error {
	rollup, counted := r.Rollups.GitRepo(repo.Namespace, repo.Name)
	if !counted {
		return nil
	}
	stored, err := r.stored(ctx, repo)
	if err != nil {
		return err
	}
	var bundles []status.BundleReadiness
	for _, object := range stored {
		if object.Labels[fleet.RepoLabel] == repo.Name {
			bundles = append(bundles, status.ReadinessOf(object))
		}
	}
	return r.writeStatus(ctx, repo, observe(observation{repo: repo, known: known, rollup: rollup, bundles: bundles}, r.Now()))
}

// nextPass is the time until the next look.
func (r *Reconciler) nextPass(known *progress) time.Duration {
	return max(known.nextLook.Sub(r.Now()), 100*time.Millisecond)
}

func (r *Reconciler) ensureFinalizer(ctx context.Context, repo *fleet.GitRepo) error {
	before := repo.DeepCopy()
	if !controllerutil.AddFinalizer(repo, fleet.GitRepoFinalizer) {
		return nil
	}
	if err := r.Client.Patch(ctx, repo, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("add finalizer to gitrepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	return nil
}

// delete removes the Bundles and lets go once the last one is gone; their deletion brings it back here.
func (r *Reconciler) delete(ctx context.Context, repo *fleet.GitRepo) error {
	if !controllerutil.ContainsFinalizer(repo, fleet.GitRepoFinalizer) {
		return nil
	}
	stored, err := r.stored(ctx, repo)
	if err != nil {
		return err
	}
	left := 0
	for _, object := range stored {
		if object.Labels[fleet.RepoLabel] != repo.Name {
			continue
		}
		left++
		if object.DeletionTimestamp.IsZero() {
			if err := r.remove(ctx, object); err != nil {
				return err
			}
		}
	}
	if left > 0 {
		return nil
	}
	if gone, err := r.noBundleLeft(ctx, repo); err != nil || !gone {
		return err
	}
	before := repo.DeepCopy()
	controllerutil.RemoveFinalizer(repo, fleet.GitRepoFinalizer)
	if err := r.Client.Patch(ctx, repo, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove finalizer from gitrepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	r.book.forget(client.ObjectKeyFromObject(repo))
	return nil
}

// noBundleLeft asks the API server, because the cache may not show the newest Bundles yet.
func (r *Reconciler) noBundleLeft(ctx context.Context, repo *fleet.GitRepo) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleList"))
	err := r.Reader.List(ctx, list, client.InNamespace(repo.Namespace), client.MatchingLabels{fleet.RepoLabel: repo.Name}, client.Limit(1))
	if err != nil {
		return false, fmt.Errorf("list bundles of gitrepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	return len(list.Items) == 0, nil
}

// writeStatus patches the status when it differs.
func (r *Reconciler) writeStatus(ctx context.Context, repo *fleet.GitRepo, next fleet.GitRepoStatus) error {
	if equality.Semantic.DeepEqual(repo.Status, next) {
		return nil
	}
	before := repo.DeepCopy()
	repo.Status = next
	if err := r.Client.Status().Patch(ctx, repo, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status of gitrepo %s/%s: %w", repo.Namespace, repo.Name, err)
	}
	return nil
}
