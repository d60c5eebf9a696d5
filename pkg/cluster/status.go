package cluster

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// Annotations of the agent's lease, by which it reports what it is.
const (
	agentVersionAnnotation      = "fleet.cattle.io/agent-version"
	kubernetesVersionAnnotation = "fleet.cattle.io/kubernetes-version"
	agentNamespaceAnnotation    = "fleet.cattle.io/agent-namespace"
	protocolVersionAnnotation   = "fleet.cattle.io/protocol-version"
)

// Report is what an agent says of itself. By it is decided what people see, and by the protocol how deployments are
// delivered.
type Report struct {
	Versions       fleet.ClusterVersions
	AgentNamespace string
}

// maxReported bounds each text of a report: a quarter of a megabyte fits into a lease's annotations.
const maxReported = 128

// ReportOf reads a report from the annotations of a lease; a protocol that is no number counts as 0.
func ReportOf(annotations map[string]string) Report {
	protocol, _ := strconv.Atoi(annotations[protocolVersionAnnotation]) // 0 on an error
	return Report{
		Versions: fleet.ClusterVersions{
			Agent:      status.Cut(annotations[agentVersionAnnotation], maxReported),
			Kubernetes: status.Cut(annotations[kubernetesVersionAnnotation], maxReported),
			Protocol:   protocol,
		},
		AgentNamespace: status.Cut(annotations[agentNamespaceAnnotation], maxReported),
	}
}

// Annotations returns the annotations of a lease that tell the report.
func (r Report) Annotations() map[string]string {
	return map[string]string{
		agentVersionAnnotation:      r.Versions.Agent,
		kubernetesVersionAnnotation: r.Versions.Kubernetes,
		protocolVersionAnnotation:   strconv.Itoa(r.Versions.Protocol),
		agentNamespaceAnnotation:    r.AgentNamespace,
	}
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
	Rollup *tally.Rollup
	Now    time.Time
	// LastSeenEvery is how old the stored last-seen time may get before a renewal writes a new one; 0 lets it
	// get as old as it likes.
	LastSeenEvery time.Duration
}

// Status returns the status a cluster should have. It differs from the stored one only where something
// a person would call news has happened: a renewed heartbeat alone is none.
func Status(s Snapshot) fleet.ClusterStatus {
	wanted := *s.Cluster.Status.DeepCopy()
	if s.Namespace != "" {
		wanted.Namespace = s.Namespace
	}
	phase := Phase(wanted.Phase, s.Heartbeat, s.Now)
	if lastSeenIsNews(s, phase) {
		wanted.Agent.LastSeen = metav1.NewTime(s.Heartbeat.Seen.Truncate(time.Second))
	}
	wanted.Phase = phase
	if s.Report != nil {
		versions := s.Report.Versions
		wanted.Versions = &versions
		wanted.Agent.Namespace = s.Report.AgentNamespace
	}
	rollup := storedRollup(&wanted)
	if s.Rollup != nil {
		rollup = *s.Rollup
	}
	parent.ApplyCluster(&wanted, rollup, liveness(wanted), s.Now)
	for _, condition := range conditions(s, wanted) {
		status.Set(&wanted.Conditions, condition, s.Now)
	}
	return wanted
}

// storedRollup reads back what Status wrote.
func storedRollup(stored *fleet.ClusterStatus) tally.Rollup {
	return tally.Rollup{
		Summary:       stored.Summary,
		Counts:        stored.ResourceCounts,
		ReadyGitRepos: stored.ReadyGitRepos,
		GitRepos:      stored.DesiredReadyGitRepos,
		ReadyHelmOps:  stored.ReadyHelmOps,
		HelmOps:       stored.DesiredReadyHelmOps,
	}
}

func lastSeenIsNews(s Snapshot, phase fleet.ClusterPhase) bool {
	stored, seen := s.Cluster.Status.Agent.LastSeen.Time, s.Heartbeat.Seen
	if s.Report == nil || seen.IsZero() || s.Heartbeat.Fresh == 0 && !stored.IsZero() {
		return false // an upstream agent writes the time itself; a restarted hub has heard nothing yet
	}
	return stored.IsZero() || phase != s.Cluster.Status.Phase && seen.Sub(stored) >= time.Second ||
		s.LastSeenEvery > 0 && seen.Sub(stored) >= s.LastSeenEvery
}

// liveness is what is shown in place of the deployments' state when no agent reports it.
func liveness(wanted fleet.ClusterStatus) parent.Liveness {
	switch {
	case disconnected(wanted.Phase):
		return parent.Liveness{State: parent.StateDisconnected, Message: silence(wanted)}
	case wanted.Phase == fleet.ClusterPending:
		return parent.Liveness{State: parent.StateWaitCheckIn, Message: neverSeen}
	}
	return parent.Liveness{}
}

func disconnected(phase fleet.ClusterPhase) bool {
	return phase == fleet.ClusterNotReady || phase == fleet.ClusterUnknown
}

const neverSeen = "no agent of this cluster has reported yet"

// silence says since when nothing is heard. The time is the stored one, so that the text stays the same
// while the silence lasts.
func silence(wanted fleet.ClusterStatus) string {
	return fmt.Sprintf("the agent has not been heard of since %s: look at its pod, at its log, and at the way from there to the hub; "+
		"what it deployed keeps running", wanted.Agent.LastSeen.UTC().Format(time.RFC3339))
}

func conditions(s Snapshot, wanted fleet.ClusterStatus) []fleet.Condition {
	processed := condition(fleet.ConditionProcessed, true, "", "")
	accepted := condition(fleet.ConditionHubAccepted, true, "", "")
	if s.Problem != nil {
		processed = condition(fleet.ConditionProcessed, false, fault.ReasonOf(s.Problem), s.Problem.Error())
		accepted = condition(fleet.ConditionHubAccepted, false, fault.ReasonOf(s.Problem), "the cluster's namespace on the hub is not ready")
	}
	return []fleet.Condition{processed, accepted, joined(wanted), available(wanted)}
}

func joined(wanted fleet.ClusterStatus) fleet.Condition {
	if wanted.Phase == fleet.ClusterPending {
		return condition(fleet.ConditionJoined, false, "NeverSeen", neverSeen)
	}
	return condition(fleet.ConditionJoined, true, "", "")
}

func available(wanted fleet.ClusterStatus) fleet.Condition {
	switch wanted.Phase {
	case fleet.ClusterReady:
		return condition(fleet.ConditionAvailable, true, "", "")
	case fleet.ClusterPending:
		return condition(fleet.ConditionAvailable, false, "NeverSeen", neverSeen)
	case fleet.ClusterNotReady:
		return condition(fleet.ConditionAvailable, false, "HeartbeatMissed", silence(wanted))
	}
	return condition(fleet.ConditionAvailable, false, "HeartbeatLost", silence(wanted))
}

// condition returns a condition without times, which setting it adds.
func condition(kind string, holds bool, reason, message string) fleet.Condition {
	state := corev1.ConditionFalse
	if holds {
		state = corev1.ConditionTrue
	}
	return fleet.Condition{Type: kind, Status: state, Reason: reason, Message: message}
}
