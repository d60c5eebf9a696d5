package stack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Deployment is one bundle on one cluster.
type Deployment struct {
	Bundle, Cluster string
	State           fleet.BundleState
	// Message explains a state that is not Ready.
	Message string
	// Resources is how many objects the agent reports.
	Resources int
}

// Progress says how far a GitRepo has come.
type Progress struct {
	// Commit whose Bundles are stored.
	Commit string
	// Problem is what the GitRepo complains of; "" when it is fine.
	Problem string
	// Bundles by name, and their deployments, sorted by bundle and cluster.
	Bundles     []string
	Deployments []Deployment
	// Rolled says that the hub's own numbers have it all Ready.
	Rolled bool
}

// Ready returns how many deployments are ready.
func (p *Progress) Ready() int {
	ready := 0
	for _, deployment := range p.Deployments {
		if deployment.State == fleet.Ready {
			ready++
		}
	}
	return ready
}

// Missing returns why a commit is not yet running everywhere: "" when it is, every bundle on each of the
// given number of clusters, and the hub's own numbers say so too.
func (p *Progress) Missing(commit string, clusters int) string {
	switch {
	case p.Problem != "" && p.Commit != commit:
		return p.Problem
	case p.Commit != commit:
		return fmt.Sprintf("the hub has not read commit %.8s", commit)
	case len(p.Bundles) == 0:
		return "there is no bundle"
	case len(p.Deployments) < len(p.Bundles)*clusters:
		return fmt.Sprintf("%d bundles have %d deployments on %d clusters", len(p.Bundles), len(p.Deployments), clusters)
	}
	var late []string
	for _, d := range p.Deployments {
		if d.State != fleet.Ready {
			late = append(late, strings.TrimSuffix(fmt.Sprintf("%s on %s is %s: %s", d.Bundle, d.Cluster, d.State, d.Message), ": "))
		}
	}
	switch {
	case len(late) > 0:
		return strings.Join(late, "\n")
	case p.Problem != "":
		return p.Problem
	case !p.Rolled:
		return "the GitRepo's own numbers are behind"
	}
	return ""
}

// Progress returns how far a GitRepo in the workspace has come.
func (s *Stack) Progress(ctx context.Context, gitRepo string) (*Progress, error) {
	var repo fleet.GitRepo
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: Workspace, Name: gitRepo}, &repo); err != nil {
		return nil, fmt.Errorf("get GitRepo %s: %w", gitRepo, err)
	}
	var bundles fleet.BundleList
	if err := s.Client.List(ctx, &bundles, client.InNamespace(Workspace), client.MatchingLabels{fleet.RepoLabel: gitRepo}); err != nil {
		return nil, fmt.Errorf("list Bundles of %s: %w", gitRepo, err)
	}
	var deployments fleet.BundleDeploymentList
	if err := s.Client.List(ctx, &deployments, client.MatchingLabels{fleet.RepoLabel: gitRepo}); err != nil {
		return nil, fmt.Errorf("list BundleDeployments of %s: %w", gitRepo, err)
	}
	deployments.Items = merge.ExplodeAll(deployments.Items)
	summary := repo.Status.Summary
	progress := &Progress{
		Commit:  repo.Status.Commit,
		Problem: problemOf(&repo),
		Rolled:  summary.Ready == summary.DesiredReady && summary.DesiredReady == len(deployments.Items),
	}
	for i := range bundles.Items {
		progress.Bundles = append(progress.Bundles, bundles.Items[i].Name)
	}
	slices.Sort(progress.Bundles)
	for i := range deployments.Items {
		progress.Deployments = append(progress.Deployments, deploymentOf(&deployments.Items[i]))
	}
	slices.SortFunc(progress.Deployments, func(a, b Deployment) int {
		return cmp.Or(cmp.Compare(a.Bundle, b.Bundle), cmp.Compare(a.Cluster, b.Cluster))
	})
	return progress, nil
}

// problemOf returns what keeps the newest commit from being stored, or from being ready everywhere.
func problemOf(repo *fleet.GitRepo) string {
	for _, kind := range []string{fleet.ConditionGitPolling, fleet.ConditionAccepted, fleet.ConditionReady} {
		if c := status.Find(repo.Status.Conditions, kind); c != nil && c.Status != "True" {
			return c.Message
		}
	}
	return ""
}

func deploymentOf(bd *fleet.BundleDeployment) Deployment {
	d := Deployment{
		Bundle:    bd.Labels[fleet.BundleLabel],
		Cluster:   bd.Labels[fleet.ClusterLabel],
		State:     status.Of(bd),
		Message:   status.MessageOf(bd),
		Resources: len(bd.Status.Resources),
	}
	for _, object := range bd.Status.NonReadyStatus {
		d.Message = strings.TrimPrefix(d.Message+"; "+status.NonReadyMessage(object), "; ")
	}
	for _, object := range bd.Status.ModifiedStatus {
		d.Message = strings.TrimPrefix(d.Message+"; "+status.ModifiedMessage(object), "; ")
	}
	return d
}
