package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
)

func equalStatus(a, b fleet.GitRepoStatus) bool { return equality.Semantic.DeepEqual(a, b) }

func TestGitRepoEvents(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fleet.GitRepo)
		want   bool
	}{
		"nothing":          {func(*fleet.GitRepo) {}, false},
		"our status":       {func(r *fleet.GitRepo) { r.Status.Commit, r.Status.ObservedGeneration = "c", 9 }, false},
		"spec":             {func(r *fleet.GitRepo) { r.Generation++ }, true},
		"labels":           {func(r *fleet.GitRepo) { r.Labels = map[string]string{"a": "b"} }, true},
		"announced":        {func(r *fleet.GitRepo) { r.Status.WebhookCommit = "c" }, true},
		"announced again":  {func(r *fleet.GitRepo) { r.Status.LastWebhookTime = metav1.NewTime(start) }, true},
		"is being deleted": {func(r *fleet.GitRepo) { r.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := repoWith(nil), repoWith(nil)
			test.change(after)
			if got := specOrLabels().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("let through: %v", got)
			}
		})
	}
}

func TestBundleEvents(t *testing.T) {
	one := want(t, "one", "a")
	for name, test := range map[string]struct {
		after *fleet.Bundle
		want  bool
	}{
		"nothing":         {cached(t, one, nil), false},
		"numbers":         {cached(t, one, func(b *fleet.Bundle) { b.Status.Summary.Ready = 3 }), false},
		"files":           {cached(t, want(t, "one", "b"), nil), true},
		"labels":          {cached(t, one, labelled("a", "b")), true},
		"what it says":    {cached(t, one, ready(corev1.ConditionFalse, "", "no")), true},
		"is planned":      {cached(t, one, func(b *fleet.Bundle) { b.Status.ObservedGeneration = 9 }), true},
		"values are gone": {cached(t, one, valuesMissing), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := bundleTouched().Update(event.UpdateEvent{ObjectOld: cached(t, one, nil), ObjectNew: test.after}); got != test.want {
				t.Errorf("let through: %v", got)
			}
		})
	}
	if !bundleTouched().Delete(event.DeleteEvent{}) || !bundleTouched().Create(event.CreateEvent{}) {
		t.Error("Bundles come and go unnoticed")
	}
}

// once is a Rollups that lets the first notification through at once.
type once struct{ asked map[string]int }

func (o once) GitRepo(string, string) (feed.Repo, bool) { return feed.Repo{}, false }

func (o once) GitRepoDelay(namespace, name string) time.Duration {
	o.asked[namespace+"/"+name]++
	return time.Duration(o.asked[namespace+"/"+name]-1) * time.Hour
}

func TestBundlesWakeTheirGitRepos(t *testing.T) {
	r := &Reconciler{Rollups: once{map[string]int{}}}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	one := want(t, "one", "a").bundle
	moved := one.DeepCopy()
	moved.Labels[fleet.RepoLabel] = "other"
	wake := r.reposOfBundles()
	wake.Create(t.Context(), event.CreateEvent{Object: &fleet.Bundle{}}, queue)
	wake.Create(t.Context(), event.CreateEvent{Object: one}, queue)
	wake.Delete(t.Context(), event.DeleteEvent{Object: one}, queue)
	wake.Update(t.Context(), event.UpdateEvent{ObjectOld: one, ObjectNew: moved}, queue)
	var woken []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		woken = append(woken, request.String())
	}
	if len(woken) != 2 || woken[0] != "ws/shop" || woken[1] != "ws/other" {
		t.Errorf("woken at once: %v", woken)
	}
}
