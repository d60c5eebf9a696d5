// Package repotest makes GitRepos, Bundles of them and errors, for tests of what passes over GitRepos find out and write.
//
// Start reading with Repo.
package repotest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Start is when tests begin.
var Start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// What goes wrong: one error of each class that a pass meets.
var (
	ErrHost = fault.New(fault.Transient, "Unreachable", "the host does not answer")
	ErrYAML = fault.New(fault.Stalled, "InvalidYAML", "app/fleet.yaml, line 2")
	ErrGone = fault.New(fault.Waiting, "BundleTerminating", "bundle is being deleted")
)

// Repo makes the GitRepo shop, an hour before Start, and changes it, nil for not at all.
func Repo(change func(*fleet.GitRepo)) *fleet.GitRepo {
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet-default", Name: "shop", Generation: 1, CreationTimestamp: metav1.NewTime(Start.Add(-time.Hour)),
	}}
	repo.Spec.Repo, repo.Spec.Branch = "https://git.example/shop", "main"
	if change != nil {
		change(repo)
	}
	return repo
}

// Bundle makes a Bundle of repository shop; text stands for its files.
func Bundle(name, text string) *fleet.Bundle {
	object := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ws", Name: name, Generation: 1,
		Labels: map[string]string{fleet.RepoLabel: "shop", fleet.CommitLabel: "c1"},
	}}
	object.Spec.Resources = []fleet.BundleResource{{Name: "one.yaml", Content: text}}
	return object
}

// Cached returns a Bundle as the cache shows it once it is stored, changed, with nil for not at all.
func Cached(t testing.TB, stored *fleet.Bundle, change func(*fleet.Bundle)) *fleet.Bundle {
	t.Helper()
	object := stored.DeepCopy()
	if err := content.Trim(object); err != nil {
		t.Fatal(err)
	}
	object.Status.ObservedGeneration = object.Generation
	if change != nil {
		change(object)
	}
	return object
}
