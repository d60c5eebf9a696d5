package parent

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// SourceInput is what the common part of a GitRepo's or HelmOp's status is made from.
type SourceInput struct {
	Previous fleet.StatusBase
	Rollup   tally.Rollup
	// Resources and PerCluster of the same roll-up.
	Resources  []fleet.Resource
	PerCluster map[string]*fleet.ResourceCounts
	// Bundles are the source's Bundles, for what they report beyond their deployments.
	Bundles []BundleReadiness
	// Err is about the source itself: it could not be read, or is refused.
	Err error
	// Busy says what is under way at the source, such as reading a new commit; empty when nothing is.
	Busy string
}

// BundleReadiness is what a Bundle says of itself.
type BundleReadiness struct {
	Name  string
	Ready *fleet.Condition
}

// ReadinessOf returns what a Bundle says of itself.
func ReadinessOf(bundle *fleet.Bundle) BundleReadiness {
	return BundleReadiness{Name: bundle.Name, Ready: status.Find(bundle.Status.Conditions, fleet.ConditionReady)}
}

// Source returns the common part of a GitRepo's or HelmOp's status. Conditions but Ready are kept from the
// previous status.
func Source(in SourceInput, now time.Time) fleet.StatusBase {
	out := *in.Previous.DeepCopy()
	out.ReadyClusters, out.DesiredReadyClusters = in.Rollup.ReadyClusters, in.Rollup.Clusters
	out.Summary = in.Rollup.Summary
	out.ResourceCounts = in.Rollup.Counts
	out.Resources, out.PerClusterResourceCounts = in.Resources, in.PerCluster

	reason, message := readiness(in.Err, nil, status.Message(&out.Summary, wordBundle))
	failed := failedBundle(in.Bundles)
	if in.Err == nil && failed != nil {
		reason, message = fleet.ReasonError, "Bundle "+failed.Name+": "+failed.Ready.Message
	}
	status.SetReady(&out.Conditions, reason, message, now)

	out.Display = fleet.StatusDisplay{
		ReadyBundleDeployments: status.ReadyOf(&out.Summary),
		State:                  displayState(&out.Summary),
	}
	switch {
	case reason == fleet.ReasonError || out.Summary.ErrApplied > 0:
		out.Display.Error, out.Display.Message = true, status.Cut(message, tally.MaxRecordText)
		if out.Display.State == "" {
			out.Display.State = string(fleet.ErrApplied)
		}
	case in.Err != nil || in.Busy != "":
		out.Display.Transitioning = true
		out.Display.Message = status.Cut(cmp.Or(in.Busy, message), tally.MaxRecordText)
		if out.Display.State == "" {
			out.Display.State = string(fleet.WaitApplied)
		}
	case message != "":
		out.Display.Transitioning = out.Summary.WaitApplied+out.Summary.Pending > 0
		out.Display.Message = status.Cut(message, tally.MaxRecordText)
	}
	return out
}

// failedBundle returns the first Bundle, by name, that reports what a person must mend. What it reports about
// its deployments is in the roll-up already.
func failedBundle(bundles []BundleReadiness) *BundleReadiness {
	bundles = slices.Clone(bundles)
	slices.SortFunc(bundles, func(a, b BundleReadiness) int { return cmp.Compare(a.Name, b.Name) })
	for i := range bundles {
		if NeedsPerson(bundles[i].Ready) {
			return &bundles[i]
		}
	}
	return nil
}

// NeedsPerson says that a Ready condition reports what a person must mend, and not only how deployments do.
func NeedsPerson(ready *fleet.Condition) bool {
	return ready != nil && ready.Status == corev1.ConditionFalse && ready.Reason == fleet.ReasonError
}

// OwnMessage returns what the Ready condition of a parent says of the parent itself, before what it says of
// the deployments below; word is what a deployment is named by there ("Cluster" on a Bundle).
func OwnMessage(ready *fleet.Condition, summary *fleet.BundleSummary, word string) string {
	if ready == nil || ready.Status != corev1.ConditionFalse {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSuffix(ready.Message, status.Message(summary, word)), "; ")
}
