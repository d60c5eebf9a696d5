package tally

import (
	"slices"
	"strings"
	"unicode"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Bounds of what is believed of a report. An agent may be hostile and an API server takes objects of more
// than a megabyte, so that a single report could make the status of everything above it too large to store.
const (
	maxName       = 253 // of an object, its namespace and its UID
	maxKind       = 63
	maxAPIVersion = 253 + 1 + 63
	maxID         = 512 // of a deployment, a release
	// maxObjectsText bounds the list of applied objects: some thousand of them.
	maxObjectsText = 512 << 10
	objectOverhead = 64
	maxListed      = 16
	maxConditions  = 16
	maxCount       = 100_000
)

// Bound cuts the status of a deployment down to what the roll-up may need of it, for caches: what agents
// report decides how much memory the hub takes.
func Bound(bd *fleet.BundleDeployment) {
	s := &bd.Status
	s.ResourceCounts = boundCounts(s.ResourceCounts)
	for _, text := range []*string{&s.AppliedDeploymentID, &s.Release} {
		*text = status.Cut(*text, maxID)
	}
	for _, text := range []*string{&s.Display.Deployed, &s.Display.Monitored, &s.Display.State} {
		*text = status.Cut(*text, status.MaxMessage)
	}
	if fits := fitting(s.Resources); fits < len(s.Resources) {
		s.Resources, s.IncompleteState = slices.Clone(s.Resources[:fits]), true
	}
	for i := range s.Resources {
		r := &s.Resources[i]
		boundObject(&r.Kind, &r.APIVersion, &r.Namespace, &r.Name)
	}
	s.Conditions = first(s.Conditions, maxConditions)
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.Message = status.Cut(c.Message, status.MaxMessage)
		for _, text := range []*string{&c.Type, &c.Reason, &c.LastUpdateTime, &c.LastTransitionTime} {
			*text = status.Cut(*text, maxName)
		}
	}
	s.IncompleteState = s.IncompleteState || len(s.ModifiedStatus) > maxListed || len(s.NonReadyStatus) > maxListed
	s.ModifiedStatus = first(s.ModifiedStatus, maxListed)
	for i := range s.ModifiedStatus {
		m := &s.ModifiedStatus[i]
		boundObject(&m.Kind, &m.APIVersion, &m.Namespace, &m.Name)
		m.Patch = status.Cut(m.Patch, status.MaxMessage)
	}
	s.ComparePatches = nil // the roll-up tells nothing of them
	s.NonReadyStatus = first(s.NonReadyStatus, maxListed)
	for i := range s.NonReadyStatus {
		n := &s.NonReadyStatus[i]
		boundObject(&n.Kind, &n.APIVersion, &n.Namespace, &n.Name)
		n.UID, n.Summary.State = status.Cut(n.UID, maxName), status.Cut(n.Summary.State, maxName)
		n.Summary.Message = first(n.Summary.Message, maxListed)
		for j := range n.Summary.Message {
			n.Summary.Message[j] = status.Cut(n.Summary.Message[j], MaxRecordText)
		}
	}
}

// first returns the beginning of a list that is too long, without holding on to the rest.
func first[T any](list []T, length int) []T {
	if len(list) <= length {
		return list
	}
	return slices.Clone(list[:length])
}

// fitting returns how many objects of a list are within its bound.
func fitting(resources []fleet.BundleDeploymentResource) int {
	budget := maxObjectsText
	for i := range resources {
		r := &resources[i]
		if budget -= len(r.Kind) + len(r.APIVersion) + len(r.Namespace) + len(r.Name) + objectOverhead; budget < 0 {
			return i
		}
	}
	return len(resources)
}

func boundObject(kind, apiVersion, namespace, name *string) {
	*kind, *apiVersion = boundWord(*kind, maxKind), boundWord(*apiVersion, maxAPIVersion)
	*namespace, *name = boundWord(*namespace, maxName), boundWord(*name, maxName)
}

// boundWord bounds what names something, and takes out what no name holds: the marks between the fields of
// a record, and what would make one name look like another.
func boundWord(text string, limit int) string {
	text = text[:min(len(text), status.Costliest*limit)] // what is far too long is not even looked at
	if strings.IndexFunc(text, unprintable) >= 0 {
		text = strings.Map(func(r rune) rune {
			if unprintable(r) {
				return -1
			}
			return r
		}, text)
	}
	return status.Cut(text, limit)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// boundCounts keeps counts within what can be, so that sums over them stay right: negative ones would hide
// what others report.
func boundCounts(counts fleet.ResourceCounts) fleet.ResourceCounts {
	for _, n := range []*int{
		&counts.Ready, &counts.DesiredReady, &counts.WaitApplied, &counts.Modified, &counts.Orphaned,
		&counts.Missing, &counts.Unknown, &counts.NotReady,
	} {
		*n = min(max(*n, 0), maxCount)
	}
	return counts
}
