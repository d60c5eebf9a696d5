package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/bundles"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/progress"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
)

// States of status.gitJobStatus, upstream's words.
const (
	jobCurrent    = "Current"
	jobInProgress = "InProgress"
	jobFailed     = "Failed"
)

// begin is the status of a GitRepo that nothing is known of yet.
func begin(repo *fleet.GitRepo, now time.Time) fleet.GitRepoStatus {
	next := *repo.Status.DeepCopy()
	next.ObservedGeneration = repo.Generation
	next.GitJobStatus = jobInProgress
	next.Display.Transitioning = true
	set(&next, now, fleet.ConditionReconciling, true, "FirstLook", "looking at the repository")
	set(&next, now, fleet.ConditionReady, false, "FirstLook", "looking at the repository for the first time")
	return next
}

// observation is everything a status is made from after a pass.
type observation struct {
	repo   *fleet.GitRepo
	known  *progress.Entry
	rollup feed.Repo
	// own are the GitRepo's Bundles by name, without those that are being deleted.
	own map[string]*fleet.Bundle
}

// observe says in a status what is known after a pass. It is pure.
func observe(o observation, now time.Time) fleet.GitRepoStatus {
	problem := o.known.Problem()
	next := *o.repo.Status.DeepCopy()
	next.StatusBase = parent.Source(parent.SourceInput{
		Previous:   next.StatusBase,
		Rollup:     o.rollup.Rollup,
		Resources:  o.rollup.Resources,
		PerCluster: o.rollup.PerCluster,
		Bundles:    readinessOf(o.own),
		Err:        o.notReady(problem),
	}, now)
	next.ObservedGeneration = o.repo.Generation
	observeCommits(&next, o.repo, o.known, now)
	observeSource(&next, o.known, problem, now)
	return next
}

// notReady is why a GitRepo is not ready beyond what its deployments and its Bundles' errors say: its source,
// or a Bundle of the newest commit that is on its way and has no deployments that could tell.
func (o observation) notReady(problem error) error {
	summary := &o.rollup.Rollup.Summary
	if problem != nil || o.known.Applied == nil || summary.Ready != summary.DesiredReady {
		return problem
	}
	for _, bundle := range o.own {
		if ready := parent.ReadinessOf(bundle).Ready; ready != nil && ready.Reason == fleet.ReasonError {
			return nil
		}
	}
	return bundles.Unsettled(o.own, o.known.Applied.Bundles)
}

func readinessOf(own map[string]*fleet.Bundle) []parent.BundleReadiness {
	all := make([]parent.BundleReadiness, 0, len(own))
	for _, bundle := range own {
		all = append(all, parent.ReadinessOf(bundle))
	}
	return all
}

// numbersOnly says that two statuses differ in nothing but what is said of deployments and Bundles.
func numbersOnly(before, after fleet.GitRepoStatus) bool {
	source := func(said fleet.GitRepoStatus) fleet.GitRepoStatus {
		said.Conditions = slices.DeleteFunc(slices.Clone(said.Conditions), func(c fleet.Condition) bool { return c.Type == fleet.ConditionReady })
		said.StatusBase = fleet.StatusBase{Conditions: said.Conditions}
		return said
	}
	return equality.Semantic.DeepEqual(source(before), source(after))
}

func observeCommits(next *fleet.GitRepoStatus, repo *fleet.GitRepo, known *progress.Entry, now time.Time) {
	if known.Seen != "" && known.Seen != next.PollingCommit {
		next.PollingCommit = known.Seen
		next.LastPollingTime = metav1.NewTime(now)
	}
	if known.Applied == nil || known.ReadErr != nil {
		return
	}
	next.Commit = known.Applied.Key.Commit
	if known.Applied.Key.Generation == repo.Generation {
		next.UpdateGeneration = repo.Spec.ForceSyncGeneration
	}
}

// observeSource writes the conditions that speak of the source; Ready is the roll-up's.
func observeSource(next *fleet.GitRepoStatus, known *progress.Entry, problem error, now time.Time) {
	setErr(next, now, fleet.ConditionGitPolling, known.LookErr)
	setErr(next, now, fleet.ConditionAccepted, deniedOnly(problem))
	set(next, now, fleet.ConditionReconciling, problem != nil && !fault.NeedsPerson(problem), reasonOf(problem), messageOf(problem))
	set(next, now, fleet.ConditionStalled, fault.NeedsPerson(problem), reasonOf(problem), messageOf(problem))
	observeWarnings(next, known.Warnings, now)
	next.GitJobStatus = jobCurrent
	switch fault.ClassOf(problem) {
	case "":
	case fault.Waiting:
		next.GitJobStatus = jobInProgress
	default:
		next.GitJobStatus = jobFailed
	}
}

func deniedOnly(err error) error {
	if fault.ClassOf(err) == fault.Denied {
		return err
	}
	return nil
}

func observeWarnings(next *fleet.GitRepoStatus, warnings []bundle.Warning, now time.Time) {
	if len(warnings) == 0 {
		status.Remove(&next.Conditions, fleet.ConditionSourceWarnings)
		return
	}
	lines := make([]string, 0, len(warnings))
	for _, warning := range warnings {
		lines = append(lines, warning.String())
	}
	set(next, now, fleet.ConditionSourceWarnings, true, "SeeMessage",
		fmt.Sprintf("%d: %s", len(lines), strings.Join(lines, "; ")))
}

func set(next *fleet.GitRepoStatus, now time.Time, kind string, holds bool, reason, message string) {
	condition := fleet.Condition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	if holds {
		condition.Status = corev1.ConditionTrue
	}
	status.Set(&next.Conditions, condition, now)
}

func setErr(next *fleet.GitRepoStatus, now time.Time, kind string, err error) {
	if err == nil {
		set(next, now, kind, true, "", "")
		return
	}
	set(next, now, kind, false, fleet.ReasonError, messageOf(err))
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return fault.ReasonOf(err)
}

func messageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
