package controller

import (
	"context"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/bundles"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/progress"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/sources"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// Register adds the controller to a manager. Changes of the numbers of a GitRepo's deployments arrive
// through rollups.
func (r *Reconciler) Register(mgr ctrl.Manager, rollups source.Source, workers int) error {
	r.sources = &sources.Opener{Reader: r.Reader, Git: r.Git, Fetcher: r.Fetcher, Keeper: r.Keeper, HostKeys: r.HostKeys}
	r.bundles = &bundles.Store{Client: r.Client, Reader: r.Reader, Keeper: r.Keeper}
	build := ctrl.NewControllerManagedBy(mgr).
		Named("gitrepo").
		For(&fleet.GitRepo{}, builder.WithPredicates(specOrLabels())).
		Watches(&fleet.Bundle{}, r.reposOfBundles(), builder.WithPredicates(bundleTouched())).
		Watches(&fleet.Policy{}, handler.EnqueueRequestsFromMapFunc(r.reposBeside)).
		Watches(&fleet.GitRepoRestriction{}, handler.EnqueueRequestsFromMapFunc(r.reposBeside)).
		WatchesRawSource(rollups).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	return r.Shards.Complete(mgr, build, &fleet.GitRepo{}, r)
}

// specOrLabels lets through what a source depends on and webhooks, not our own status writes.
func specOrLabels() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{},
		predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
			return announced(e) || e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
		}})
}

func announced(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*fleet.GitRepo)
	after, also := e.ObjectNew.(*fleet.GitRepo)
	return ok && also && (before.Status.WebhookCommit != after.Status.WebhookCommit ||
		!before.Status.LastWebhookTime.Equal(&after.Status.LastWebhookTime))
}

// bundleTouched lets through what may need the source's Bundle to be restored, and what the Bundle says of
// itself.
func bundleTouched() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, _ := e.ObjectOld.(*fleet.Bundle)
			after, _ := e.ObjectNew.(*fleet.Bundle)
			if before == nil || after == nil {
				return false
			}
			was, _ := content.SummaryOf(before)
			is, _ := content.SummaryOf(after)
			return was != is || !maps.Equal(before.Labels, after.Labels) || !sameReadiness(before, after)
		},
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

func sameReadiness(a, b *fleet.Bundle) bool {
	if a.Status.ObservedGeneration != b.Status.ObservedGeneration {
		return false
	}
	x, y := parent.ReadinessOf(a).Ready, parent.ReadinessOf(b).Ready
	if x == nil || y == nil {
		return x == y
	}
	return x.Status == y.Status && x.Reason == y.Reason && x.Message == y.Message
}

// reposOfBundles wakes the GitRepos of Bundles up: at once for the first event, then for many together.
func (r *Reconciler) reposOfBundles() handler.EventHandler {
	wake := func(object client.Object) {
		if name := object.GetLabels()[fleet.RepoLabel]; name != "" {
			r.Rollups.Changed(tally.KindGitRepo, object.GetNamespace(), name)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.ObjectNew)
			if e.ObjectOld.GetLabels()[fleet.RepoLabel] != e.ObjectNew.GetLabels()[fleet.RepoLabel] {
				wake(e.ObjectOld) // the one that lost it
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(e.Object)
		},
	}
}

// reposBeside lists the GitRepos of an object's namespace.
func (r *Reconciler) reposBeside(ctx context.Context, object client.Object) []reconcile.Request {
	var list fleet.GitRepoList
	if err := r.Client.List(ctx, &list, client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list gitrepos", "namespace", object.GetNamespace())
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}

// announce writes an event when something new was seen or went wrong.
func (r *Reconciler) announce(repo *fleet.GitRepo, known *progress.Entry) {
	problem := known.Problem()
	told := known.Seen
	if problem != nil {
		told = problem.Error()
	}
	if told == known.Told || told == "" {
		return
	}
	known.Told = told
	switch {
	case known.Denied != nil:
		r.Events.Eventf(repo, nil, corev1.EventTypeWarning, "PolicyViolation", "ApplyGitRepoRestrictions", "%s", note(problem))
	case known.LookErr != nil:
		r.Events.Eventf(repo, nil, corev1.EventTypeWarning, "FailedToCheckCommit", "Poll", "%s", note(problem))
	case fault.ClassOf(problem) == fault.Waiting:
	case problem != nil:
		r.Events.Eventf(repo, nil, corev1.EventTypeWarning, "Failed", "Read", "%s", note(problem))
	case known.Seen != repo.Status.PollingCommit:
		r.Events.Eventf(repo, nil, corev1.EventTypeNormal, "GotNewCommit", "Poll", "commit %s", known.Seen)
	}
}

// maxNote is how long the text of an event may be; the API server refuses longer ones.
const maxNote = 1000

// note is an error's message, short enough for an event.
func note(err error) string {
	text := messageOf(err)
	if len(text) <= maxNote {
		return text
	}
	return strings.ToValidUTF8(text[:maxNote], "") + "…"
}
