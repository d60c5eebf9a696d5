package controller

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
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
	repo    *fleet.GitRepo
	known   *progress
	rollup  feed.Repo
	bundles []status.BundleReadiness
}

// observe says in a status what is known after a pass. It is pure.
func observe(o observation, now time.Time) fleet.GitRepoStatus {
	problem := problemOf(o.known)
	next := *o.repo.Status.DeepCopy()
	next.StatusBase = status.Source(status.SourceInput{
		Previous:   next.StatusBase,
		Rollup:     o.rollup.Rollup,
		Resources:  o.rollup.Resources,
		PerCluster: o.rollup.PerCluster,
		Bundles:    o.bundles,
		Err:        problem,
	}, now)
	next.ObservedGeneration = o.repo.Generation
	observeCommits(&next, o.repo, o.known, now)
	observeSource(&next, o.known, problem, now)
	return next
}

func observeCommits(next *fleet.GitRepoStatus, repo *fleet.GitRepo, known *progress, now time.Time) {
	if known.seen != "" && known.seen != next.PollingCommit {
		next.PollingCommit = known.seen
		next.LastPollingTime = metav1.NewTime(now)
	}
	if known.applied != nil && known.readErr == nil {
		next.Commit = known.applied.key.commit
		next.UpdateGeneration = repo.Spec.ForceSyncGeneration
	}
}

// observeSource writes the conditions that speak of the source; Ready is the roll-up's.
func observeSource(next *fleet.GitRepoStatus, known *progress, problem error, now time.Time) {
	setErr(next, now, fleet.ConditionGitPolling, known.lookErr)
	setErr(next, now, fleet.ConditionAccepted, deniedOnly(problem))
	set(next, now, fleet.ConditionReconciling, problem != nil && !fault.NeedsPerson(problem), reasonOf(problem), messageOf(problem))
	set(next, now, fleet.ConditionStalled, fault.NeedsPerson(problem), reasonOf(problem), messageOf(problem))
	observeWarnings(next, known.warnings, now)
	next.GitJobStatus = jobCurrent
	if problem != nil {
		next.GitJobStatus = jobFailed
	}
}

// problemOf is what keeps the newest source from being applied: an older look's error does not hide a
// failed read.
func problemOf(known *progress) error {
	if known.lookErr != nil {
		return known.lookErr
	}
	return known.readErr
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
