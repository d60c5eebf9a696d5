package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/repotest"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
	"github.com/fairlead-dev/fairlead/pkg/target"
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
		"announced again":  {func(r *fleet.GitRepo) { r.Status.LastWebhookTime = metav1.NewTime(repotest.Start) }, true},
		"is being deleted": {func(r *fleet.GitRepo) { r.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := repotest.Repo(nil), repotest.Repo(nil)
			test.change(after)
			if got := specOrLabels().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("let through: %v", got)
			}
		})
	}
}

func TestBundleEvents(t *testing.T) {
	for name, test := range map[string]struct {
		after *fleet.Bundle
		want  bool
	}{
		"nothing":         {cached(t, "one", "a", nil), false},
		"numbers":         {cached(t, "one", "a", func(b *fleet.Bundle) { b.Status.Summary.Ready = 3 }), false},
		"files":           {cached(t, "one", "b", nil), true},
		"labels":          {cached(t, "one", "a", func(b *fleet.Bundle) { b.Labels["a"] = "b" }), true},
		"what it says":    {cached(t, "one", "a", ready(corev1.ConditionFalse, "", "no")), true},
		"is planned":      {cached(t, "one", "a", func(b *fleet.Bundle) { b.Status.ObservedGeneration = 9 }), true},
		"values are gone": {cached(t, "one", "a", ready(corev1.ConditionFalse, target.ReasonValuesMissing, "no Secret")), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := bundleTouched().Update(event.UpdateEvent{ObjectOld: cached(t, "one", "a", nil), ObjectNew: test.after}); got != test.want {
				t.Errorf("let through: %v", got)
			}
		})
	}
	if !bundleTouched().Delete(event.DeleteEvent{}) || !bundleTouched().Create(event.CreateEvent{}) {
		t.Error("Bundles come and go unnoticed")
	}
}

// wakes is a Rollups that notes which GitRepos are woken up.
type wakes struct{ woken *[]string }

func (w wakes) GitRepo(string, string) (feed.Repo, bool) { return feed.Repo{}, false }

func (w wakes) Telling(tally.ParentKind, string, string) feed.Telling { return feed.Telling{} }

func (w wakes) Changed(kind tally.ParentKind, namespace, name string) {
	*w.woken = append(*w.woken, string(kind)+" "+namespace+"/"+name)
}

func TestBundlesWakeTheirGitRepos(t *testing.T) {
	var woken []string
	r := &Reconciler{Rollups: wakes{&woken}}
	one := cached(t, "one", "a", nil)
	moved := one.DeepCopy()
	moved.Labels[fleet.RepoLabel] = "other"
	wake := r.reposOfBundles()
	wake.Create(t.Context(), event.CreateEvent{Object: &fleet.Bundle{}}, nil)
	wake.Create(t.Context(), event.CreateEvent{Object: one}, nil)
	wake.Delete(t.Context(), event.DeleteEvent{Object: one}, nil)
	wake.Update(t.Context(), event.UpdateEvent{ObjectOld: one, ObjectNew: moved}, nil)
	if got, want := strings.Join(woken, " "), "GitRepo ws/shop GitRepo ws/shop GitRepo ws/other GitRepo ws/shop"; got != want {
		t.Errorf("woken up: %s, want %s", got, want)
	}
}
