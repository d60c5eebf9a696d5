package cluster

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	summary "github.com/fairlead-dev/fairlead/pkg/status"
)

// Words of display.state that are not states of bundles. Rancher's dashboard knows both.
const (
	StateWaitCheckIn  = "WaitCheckIn"
	StateDisconnected = "Disconnected"
)

// Annotations of the agent's lease, by which it reports what it is.
const (
	agentVersionAnnotation      = "fleet.cattle.io/agent-version"
	kubernetesVersionAnnotation = "fleet.cattle.io/kubernetes-version"
	agentNamespaceAnnotation    = "fleet.cattle.io/agent-namespace"
	protocolVersionAnnotation   = "fleet.cattle.io/protocol-version"
)

// Report is what an agent says of itself. Nothing is decided by it but what people see.
type Report struct {
	Versions       fleet.ClusterVersions
	AgentNamespace string
}

// ReportOf reads a report from the annotations of a lease; a protocol that is no number counts as 0.
func ReportOf(annotations map[string]string) Report {
	protocol, _ := strconv.Atoi(annotations[protocolVersionAnnotation]) // 0 on an error
	return Report{
		Versions: fleet.ClusterVersions{
			Agent:      annotations[agentVersionAnnotation],
			Kubernetes: annotations[kubernetesVersionAnnotation],
			Protocol:   protocol,
		},
		AgentNamespace: annotations[agentNamespaceAnnotation],
	}
}

// Rollup is the state of all deployments on a cluster together.
type Rollup struct {
	Summary              fleet.BundleSummary
	ResourceCounts       fleet.ResourceCounts
	ReadyGitRepos        int
	DesiredReadyGitRepos int
	ReadyHelmOps         int
	DesiredReadyHelmOps  int
	// State is the worst state of a deployment; Ready, or empty, when there is nothing to tell.
	State fleet.BundleState
	// Message of the condition Ready; empty when everything is ready.
	Message string
}

// Snapshot is everything a cluster's status depends on.
type Snapshot struct {
	// Cluster as it is stored.
	Cluster *fleet.Cluster
	// Namespace on the hub, once it exists with what belongs into it.
	Namespace string
	// Problem that keeps the hub from making the namespace ready; nil when there is none.
	Problem   error
	Heartbeat Heartbeat
	// Report is nil for an agent without lease.
	Report *Report
	// Rollup is nil while the deployments are not counted yet: then the stored numbers stay.
	Rollup *Rollup
	Now    time.Time
	// LastSeenEvery is how old the stored last-seen time may get before a renewal writes a new one.
	LastSeenEvery time.Duration
}

// Status returns the status a cluster should have. It differs from the stored one only where something
// a person would call news has happened: a renewed heartbeat alone is none.
func Status(s Snapshot) fleet.ClusterStatus {
	status := *s.Cluster.Status.DeepCopy()
	if s.Namespace != "" {
		status.Namespace = s.Namespace
	}
	phase := Phase(status.Phase, s.Heartbeat, s.Now)
	if lastSeenIsNews(s, phase) {
		status.Agent.LastSeen = metav1.NewTime(s.Heartbeat.Seen.Truncate(time.Second))
	}
	status.Phase = phase
	if s.Report != nil {
		versions := s.Report.Versions
		status.Versions = &versions
		status.Agent.Namespace = s.Report.AgentNamespace
	}
	roll := storedRollup(&status)
	if s.Rollup != nil {
		roll = *s.Rollup
	}
	status.Summary, status.ResourceCounts = roll.Summary, roll.ResourceCounts
	status.ReadyGitRepos, status.DesiredReadyGitRepos = roll.ReadyGitRepos, roll.DesiredReadyGitRepos
	status.ReadyHelmOps, status.DesiredReadyHelmOps = roll.ReadyHelmOps, roll.DesiredReadyHelmOps
	status.Display = display(status, roll)
	for _, condition := range conditions(s, status, roll) {
		summary.Set(&status.Conditions, condition, s.Now)
	}
	return status
}

// storedRollup reads back what Status wrote.
func storedRollup(status *fleet.ClusterStatus) Rollup {
	return Rollup{
		Summary:              status.Summary,
		ResourceCounts:       status.ResourceCounts,
		ReadyGitRepos:        status.ReadyGitRepos,
		DesiredReadyGitRepos: status.DesiredReadyGitRepos,
		ReadyHelmOps:         status.ReadyHelmOps,
		DesiredReadyHelmOps:  status.DesiredReadyHelmOps,
		State:                summary.WorstOf(&status.Summary),
		Message:              summary.Message(&status.Summary, "Bundle"),
	}
}

func lastSeenIsNews(s Snapshot, phase fleet.ClusterPhase) bool {
	stored, seen := s.Cluster.Status.Agent.LastSeen.Time, s.Heartbeat.Seen
	if s.Report == nil || seen.IsZero() || s.Heartbeat.Fresh == 0 && !stored.IsZero() {
		return false // an upstream agent writes the time itself; a restarted hub has heard nothing yet
	}
	return stored.IsZero() || phase != s.Cluster.Status.Phase && seen.Sub(stored) >= time.Second ||
		seen.Sub(stored) >= s.LastSeenEvery
}

func display(status fleet.ClusterStatus, roll Rollup) fleet.ClusterDisplay {
	shown := fleet.ClusterDisplay{ReadyBundles: fmt.Sprintf("%d/%d", roll.Summary.Ready, roll.Summary.DesiredReady)}
	switch {
	case disconnected(status.Phase):
		shown.State, shown.Message, shown.Error = StateDisconnected, silence(status), true
	case status.Phase == fleet.ClusterPending:
		shown.State = StateWaitCheckIn
	case roll.State.Rank() > fleet.Ready.Rank():
		shown.State = string(roll.State)
	}
	return shown
}

func disconnected(phase fleet.ClusterPhase) bool {
	return phase == fleet.ClusterNotReady || phase == fleet.ClusterUnknown
}

// silence says since when nothing is heard. The time is the stored one, so that the text stays the same
// while the silence lasts.
func silence(status fleet.ClusterStatus) string {
	return fmt.Sprintf("the agent has not been heard of since %s: look at its pod, at its log, and at the way from there to the hub; "+
		"what it deployed keeps running", status.Agent.LastSeen.UTC().Format(time.RFC3339))
}

func conditions(s Snapshot, status fleet.ClusterStatus, roll Rollup) []fleet.Condition {
	processed := condition(fleet.ConditionProcessed, true, "", "")
	accepted := condition(fleet.ConditionHubAccepted, true, "", "")
	if s.Problem != nil {
		processed = condition(fleet.ConditionProcessed, false, fault.ReasonOf(s.Problem), s.Problem.Error())
		accepted = condition(fleet.ConditionHubAccepted, false, fault.ReasonOf(s.Problem), "the cluster's namespace on the hub is not ready")
	}
	return []fleet.Condition{processed, accepted, joined(status), available(status), ready(status, roll)}
}

func joined(status fleet.ClusterStatus) fleet.Condition {
	if status.Phase == fleet.ClusterPending {
		return condition(fleet.ConditionJoined, false, "NeverSeen", "no agent of this cluster has reported yet")
	}
	return condition(fleet.ConditionJoined, true, "", "")
}

func available(status fleet.ClusterStatus) fleet.Condition {
	switch status.Phase {
	case fleet.ClusterReady:
		return condition(fleet.ConditionAvailable, true, "", "")
	case fleet.ClusterPending:
		return condition(fleet.ConditionAvailable, false, "NeverSeen", "no agent of this cluster has reported yet")
	case fleet.ClusterNotReady:
		return condition(fleet.ConditionAvailable, false, "HeartbeatMissed", silence(status))
	}
	return condition(fleet.ConditionAvailable, false, "HeartbeatLost", silence(status))
}

func ready(status fleet.ClusterStatus, roll Rollup) fleet.Condition {
	switch {
	case disconnected(status.Phase):
		return condition(fleet.ConditionReady, false, StateDisconnected, silence(status))
	case roll.Message != "":
		return condition(fleet.ConditionReady, false, "", roll.Message)
	}
	return condition(fleet.ConditionReady, true, "", "")
}
