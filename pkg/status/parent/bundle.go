package parent

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// maxPartitions bounds status.partitions of a Bundle; with more the last stands for the rest. maxPartitionName bounds
// their names, as those of objects.
const (
	maxPartitions    = 100
	maxPartitionName = 253
)

// Words for parents in messages.
const (
	wordCluster = "Cluster"
	wordBundle  = "Bundle"
)

// Rollout is what a plan says about a bundle's rollout.
type Rollout struct {
	// Missing deployments: clusters that are reached and have none yet.
	Missing                                         int
	NewlyCreated                                    int
	Unavailable, MaxUnavailable                     int
	UnavailablePartitions, MaxUnavailablePartitions int
	Partitions                                      []fleet.PartitionStatus
	Progress                                        fleet.RolloutStatus
	// NextCheck is when time alone may change this; zero when it does not.
	NextCheck time.Time
}

// BundleInput is what a Bundle's status is made from.
type BundleInput struct {
	// Previous status; what is not rolled up is kept from it.
	Previous fleet.BundleStatus
	// Generation of the spec the other input belongs to.
	Generation int64
	Rollup     tally.Rollup
	// Rollout is nil when the bundle could not be planned; then the previous numbers stay.
	Rollout *Rollout
	// Err is about the whole bundle and takes the place of the roll-up's message.
	Err error
	// Problems wait for a person; they come before the roll-up's message.
	Problems []string
	// Held are the clusters that are kept from what is wanted there.
	Held []Held
	// Merged says how far the deployments are merged; nil when they are not to be.
	Merged *Merged
	// ResourcesSHA256Sum and OCIReference are taken when not empty.
	ResourcesSHA256Sum string
	OCIReference       string
}

// Bundle returns the status of a Bundle.
func Bundle(in BundleInput, now time.Time) fleet.BundleStatus {
	out := *in.Previous.DeepCopy()
	out.ObservedGeneration = in.Generation
	out.ResourceKey = nil
	if in.ResourcesSHA256Sum != "" {
		out.ResourcesSHA256Sum = in.ResourcesSHA256Sum
	}
	if in.OCIReference != "" {
		out.OCIReference = in.OCIReference
	}
	rollup := in.Rollup
	if in.Rollout != nil {
		addPending(&rollup, in.Rollout.Missing)
		out.NewlyCreated = in.Rollout.NewlyCreated
		out.Unavailable, out.MaxUnavailable = in.Rollout.Unavailable, in.Rollout.MaxUnavailable
		out.UnavailablePartitions = in.Rollout.UnavailablePartitions
		out.MaxUnavailablePartitions = in.Rollout.MaxUnavailablePartitions
		out.PartitionStatus = shownPartitions(in.Rollout.Partitions)
		progress := in.Rollout.Progress
		if !in.Rollout.NextCheck.IsZero() {
			progress.NextCheck = &metav1.Time{Time: in.Rollout.NextCheck.UTC()}
		}
		out.Rollout = &progress
	}
	hold(&rollup.Summary, in.Held)
	if in.Rollout == nil && in.Err != nil && fault.NeedsPerson(in.Err) {
		// Nothing goes on before somebody mends it.
		if out.Rollout == nil {
			out.Rollout = &fleet.RolloutStatus{}
		}
		out.Rollout.Phase, out.Rollout.NextCheck = fleet.RolloutHalted, nil
	}
	out.Summary = rollup.Summary
	out.Display = fleet.BundleDisplay{ReadyClusters: status.ReadyOf(&out.Summary), State: displayState(&out.Summary)}
	reason, message := readiness(in.Err, in.Problems, status.Message(&out.Summary, wordCluster))
	if in.Err == nil && slices.ContainsFunc(in.Held, func(held Held) bool { return !held.Waits }) {
		reason = fleet.ReasonError
	}
	status.SetReady(&out.Conditions, reason, message, now)
	if in.Rollout != nil {
		setMerged(&out.Conditions, in.Merged, now)
	}
	return out
}

// shownPartitions are the first of a bundle's partitions, with names of a length that fits, and where there are too
// many one more that stands for all others.
func shownPartitions(all []fleet.PartitionStatus) []fleet.PartitionStatus {
	most := len(all)
	if most > maxPartitions {
		most = maxPartitions - 1
	}
	shown := slices.Clone(all[:most])
	for i := range shown {
		shown[i].Name = status.Cut(shown[i].Name, maxPartitionName)
	}
	if left := all[most:]; len(left) > 0 {
		rest, sum := fleet.PartitionStatus{Name: strconv.Itoa(len(left)) + " more"}, tally.Rollup{}
		for i := range left {
			rest.Count += left[i].Count
			rest.MaxUnavailable += left[i].MaxUnavailable
			rest.Unavailable += left[i].Unavailable
			sum.Add(tally.Rollup{Summary: left[i].Summary})
		}
		rest.Summary = sum.Summary
		shown = append(shown, rest)
	}
	return shown
}

// readiness returns reason and message of the Ready condition: an error's, else the problems and what the
// roll-up says. Reason Error, which dashboards show as a failure, stands for what a person must mend; what is
// waited for has its own reason.
func readiness(err error, problems []string, rolledUp string) (reason, message string) {
	if err != nil {
		switch fault.ClassOf(err) {
		case fault.Stalled, fault.Denied:
			reason = fleet.ReasonError
		case fault.Waiting:
			reason = fault.ReasonOf(err)
		}
		return reason, err.Error()
	}
	message = joinProblems(problems, rolledUp)
	if len(problems) > 0 {
		reason = fleet.ReasonError
	}
	return reason, message
}

// displayState is the state as display.state has it: left out when ready.
func displayState(summary *fleet.BundleSummary) string {
	if state := status.WorstOf(summary); state != fleet.Ready {
		return string(state)
	}
	return ""
}

// shownProblems bounds the problems named in a message.
const shownProblems = 3

func joinProblems(problems []string, rest string) string {
	message := ""
	for i, problem := range problems {
		if i == shownProblems {
			message += "; and " + strconv.Itoa(len(problems)-i) + " more"
			break
		}
		if message != "" {
			message += "; "
		}
		message += status.Cut(problem, tally.MaxRecordText)
	}
	if message == "" || rest == "" {
		return message + rest
	}
	return message + "; " + rest
}
