package parent

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// StateWaitCheckIn is the display state of a cluster whose agent was never heard from, and
// StateDisconnected of one that is not heard from any more.
const (
	StateWaitCheckIn  = "WaitCheckIn"
	StateDisconnected = "Disconnected"
)

// shownClusters bounds the clusters named in a group's status.
const shownClusters = 10

// Liveness is what the hub knows about a cluster's agent beside its deployments.
type Liveness struct {
	// State to show in place of the deployments': StateWaitCheckIn, StateDisconnected, or empty.
	State string
	// Message says why, for people.
	Message string
}

// ApplyCluster writes a roll-up into a Cluster's status: summary, counts, display and the Ready condition.
// Everything else in the status is left alone.
func ApplyCluster(to *fleet.ClusterStatus, rollup tally.Rollup, live Liveness, now time.Time) {
	to.Summary = rollup.Summary
	to.ResourceCounts = rollup.Counts
	to.ReadyGitRepos, to.DesiredReadyGitRepos = rollup.ReadyGitRepos, rollup.GitRepos
	to.ReadyHelmOps, to.DesiredReadyHelmOps = rollup.ReadyHelmOps, rollup.HelmOps
	to.Display = fleet.ClusterDisplay{ReadyBundles: status.ReadyOf(&rollup.Summary), State: displayState(&rollup.Summary)}
	message := status.Message(&rollup.Summary, wordBundle)
	if live.State != "" {
		to.Display.State = live.State
		to.Display.Message = live.Message
		to.Display.Error = live.State == StateDisconnected
		// What the deployments last reported is old news and may be wrong by now.
		message = cmp.Or(live.Message, live.State)
	}
	status.SetReady(&to.Conditions, "", message, now)
}

// GroupMember is a cluster of a cluster group.
type GroupMember struct {
	Name   string
	Rollup tally.Rollup
	// NotReady says that the cluster counts as not ready whatever its deployments say: its agent is not
	// heard from.
	NotReady bool
}

// ClusterGroup returns the status of a ClusterGroup. Conditions but Ready are kept from the previous status.
func ClusterGroup(previous fleet.ClusterGroupStatus, members []GroupMember, now time.Time) fleet.ClusterGroupStatus {
	out := *previous.DeepCopy()
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b GroupMember) int { return cmp.Compare(a.Name, b.Name) })
	var total tally.Rollup
	var failing []string
	for _, member := range members {
		total.Add(member.Rollup)
		if member.NotReady || member.Rollup.Summary.Ready != member.Rollup.Summary.DesiredReady {
			failing = append(failing, member.Name)
		}
	}
	out.ClusterCount, out.NonReadyClusterCount = len(members), len(failing)
	out.NonReadyClusters = failing[:min(len(failing), shownClusters)]
	out.Summary = total.Summary
	out.ResourceCounts = total.Counts
	out.Display = fleet.ClusterGroupDisplay{
		ReadyClusters: strconv.Itoa(len(members)-len(failing)) + "/" + strconv.Itoa(len(members)),
		ReadyBundles:  status.ReadyOf(&total.Summary),
		State:         displayState(&total.Summary),
	}
	message := status.Message(&total.Summary, wordBundle)
	if len(failing) > 0 {
		out.Display.ReadyClusters += " (" + strings.Join(out.NonReadyClusters, ",") + ")"
		message = cmp.Or(message, "clusters are not ready: "+strings.Join(out.NonReadyClusters, ", "))
		out.Display.State = cmp.Or(out.Display.State, string(fleet.NotReady))
	}
	status.SetReady(&out.Conditions, "", message, now)
	return out
}
