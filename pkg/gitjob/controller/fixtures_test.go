package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
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
