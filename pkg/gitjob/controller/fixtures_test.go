package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var (
	errHost = fault.New(fault.Transient, "Unreachable", "the host does not answer")
	errYAML = fault.New(fault.Stalled, "InvalidYAML", "app/fleet.yaml, line 2")
	errGone = fault.New(fault.Waiting, "BundleTerminating", "bundle is being deleted")
)

func repoWith(change func(*fleet.GitRepo)) *fleet.GitRepo {
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet-default", Name: "shop", Generation: 1, CreationTimestamp: metav1.NewTime(start.Add(-time.Hour)),
	}}
	repo.Spec.Repo, repo.Spec.Branch = "https://git.example/shop", "main"
	if change != nil {
		change(repo)
	}
	return repo
}

// cached is a Bundle of repository shop as the cache shows it once it is stored; text stands for its files.
func cached(t testing.TB, name, text string, change func(*fleet.Bundle)) *fleet.Bundle {
	t.Helper()
	object := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ws", Name: name, Generation: 1,
		Labels: map[string]string{fleet.RepoLabel: "shop", fleet.CommitLabel: "c1"},
	}}
	object.Spec.Resources = []fleet.BundleResource{{Name: "one.yaml", Content: text}}
	if err := content.Trim(object); err != nil {
		t.Fatal(err)
	}
	object.Status.ObservedGeneration = object.Generation
	if change != nil {
		change(object)
	}
	return object
}

func ready(status corev1.ConditionStatus, reason, message string) func(*fleet.Bundle) {
	return func(b *fleet.Bundle) {
		b.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionReady, Status: status, Reason: reason, Message: message}}
	}
}
