package target

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/target/rollout"
)

// members describes the clusters to the rollout.
func members(s Snapshot, targets []*Targeted, current map[string]*fleet.BundleDeployment) []rollout.Member {
	list := make([]rollout.Member, len(targets))
	for i, target := range targets {
		member := rollout.Member{
			Partitions: target.Partitions,
			Paused:     target.Cluster.Paused,
			Idle:       target.Cluster.OffSchedule,
			Offline:    target.Cluster.Offline,
			Frozen:     target.Err != nil && !target.held,
			Held:       target.held,
		}
		if bd := current[target.Cluster.DeploymentNamespace]; bd != nil {
			member.Exists = true
			member.Frozen = member.Frozen || bd.DeletionTimestamp != nil
			member.Unavailable = bd.Status.AppliedDeploymentID != bd.Spec.DeploymentID || !bd.Status.Ready
			member.Released = bd.Spec.DeploymentID == target.DeploymentID && target.Err == nil
			member.Applied = member.Released && !member.Unavailable
			if member.Released && timed(s.Bundle) {
				member.SentAt = sentAt(bd, target.Cluster.AvailableSince)
			}
			member.Failed = member.Released && failed(bd, member.SentAt)
			if member.Applied {
				member.ReadySince = readySince(bd, member.SentAt)
			}
		}
		list[i] = member
	}
	return list
}

// timed says that the rollout of a bundle looks at times.
func timed(bundle *fleet.Bundle) bool {
	strategy := bundle.Spec.RolloutStrategy
	return strategy != nil && (strategy.MinSuccessTime != nil || strategy.ProgressDeadline != nil)
}

// sentAt returns when the agent was told what is wanted, or since when it is heard from again after that; zero
// when it is not known.
func sentAt(bd *fleet.BundleDeployment, availableSince time.Time) time.Time {
	told := timeOf(bd.Annotations[fleet.ReleasedAnnotation])
	if told.IsZero() {
		return told
	}
	return later(told, availableSince)
}

// failed says that the agent could not apply what it was told. Agents that do not say what their report is
// about are believed when they wrote it after they were told.
func failed(bd *fleet.BundleDeployment, sentAt time.Time) bool {
	if status.Of(bd) != fleet.ErrApplied {
		return false
	}
	if bd.Status.AckedDeploymentID != "" {
		return true
	}
	return !timeOf(status.Find(bd.Status.Conditions, fleet.ConditionDeployed).LastUpdateTime).Before(sentAt)
}

// readySince returns since when a deployment is applied and ready: the newest of when it was told, when the
// agent reported another deployment, and when it became ready.
func readySince(bd *fleet.BundleDeployment, sentAt time.Time) time.Time {
	since := sentAt
	if deployed := status.Find(bd.Status.Conditions, fleet.ConditionDeployed); deployed != nil {
		since = later(since, timeOf(deployed.LastUpdateTime))
	}
	if ready := status.Find(bd.Status.Conditions, fleet.ConditionReady); ready != nil {
		since = later(since, timeOf(ready.LastTransitionTime))
	}
	return since
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// timeOf reads a time as conditions have it; zero when it is none.
func timeOf(text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	read, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return read
}

// AcceptedFailures returns up to how many failures a person wants the present generation's rollout to go
// on; 0 when nobody said so.
func AcceptedFailures(bundle *fleet.Bundle) int {
	generation, count, _ := strings.Cut(bundle.Annotations[fleet.AcceptedFailuresAnnotation], ":")
	if generation != strconv.FormatInt(bundle.Generation, 10) {
		return 0
	}
	accepted, err := strconv.Atoi(count)
	if err != nil {
		return 0
	}
	return accepted
}

// AcceptFailures returns the annotation's value that AcceptedFailures reads.
func AcceptFailures(generation int64, count int) string {
	return fmt.Sprintf("%d:%d", generation, count)
}

// KeepAccepted keeps failures accepted that a person accepted of a stored bundle, when that it is paused or not is all
// that the next spec changes: no other version is rolled out by that. Call it before the spec is stored over the old one.
func KeepAccepted(stored *fleet.Bundle, next fleet.BundleSpec) {
	accepted := AcceptedFailures(stored)
	if accepted == 0 || stored.Spec.Paused == next.Paused {
		return
	}
	next.Paused = stored.Spec.Paused
	before, failed := content.Summarize(stored.Spec)
	after, err := content.Summarize(next)
	if failed == nil && err == nil && before == after {
		stored.Annotations[fleet.AcceptedFailuresAnnotation] = AcceptFailures(stored.Generation+1, accepted)
	}
}

// await counts the clusters that have no place for deployments yet: they are to come.
func (p *Plan) await(waiting int) {
	if waiting == 0 {
		return
	}
	p.Rollout.ToApply += waiting
	if p.Rollout.Phase == fleet.RolloutComplete {
		p.Rollout.Phase = fleet.RolloutProgressing
	}
}
