package parent

import (
	"cmp"
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// Held is a cluster, or a bundle on a cluster, that is kept from what is wanted there, because it cannot be made or does not render.
type Held struct {
	// Name is "namespace/name" of the cluster in a bundle's summary, and the bundle's name in a cluster's.
	Name string
	// State of the cluster's deployment; empty when it has none.
	State fleet.BundleState
	// Message says why.
	Message string
	// Waits says that it goes on by itself: nobody has to mend anything.
	Waits bool
}

// heldBack starts the message of a cluster that is held back.
const heldBack = "held back: "

// HeldBack returns why a cluster is held back, as a bundle's summary names it; false when it is not.
func HeldBack(resource *fleet.NonReadyResource) (why string, is bool) {
	return strings.CutPrefix(resource.Message, heldBack)
}

// Hold counts what a cluster is kept from in its roll-up. What has no deployment is not counted in it yet.
func Hold(rollup *tally.Rollup, held []Held) {
	for _, one := range held {
		if one.State == "" {
			addPending(rollup, 1)
		}
	}
	hold(&rollup.Summary, held)
}

// addPending counts clusters that have no deployment yet.
func addPending(rollup *tally.Rollup, n int) {
	rollup.Summary.Pending += n
	rollup.Summary.DesiredReady += n
}

// hold counts clusters that are held back in a bundle's summary: those without deployment are pending (and
// counted as that already), the others at least out of sync, whatever their deployment says of itself.
func hold(summary *fleet.BundleSummary, held []Held) {
	if len(held) == 0 {
		return
	}
	listed := map[string]*fleet.NonReadyResource{}
	list := slices.Clone(summary.NonReadyResources)
	for i := range list {
		listed[list[i].Name] = &list[i]
	}
	isHeld := map[string]bool{}
	var added []fleet.NonReadyResource
	for _, one := range held {
		state := fleet.Pending
		if one.State != "" {
			state = worse(one.State, fleet.OutOfSync)
		}
		// Counts may be newer than what was planned on; then another pass is on its way.
		if one.State != "" && status.CountOf(summary, one.State) > 0 {
			status.Count(summary, one.State, -1)
			status.Count(summary, state, 1)
		}
		entry := fleet.NonReadyResource{Name: one.Name, State: state, Message: status.Cut(heldBack+one.Message, tally.MaxRecordText)}
		isHeld[one.Name] = true
		if present := listed[one.Name]; present != nil {
			*present = entry
			continue
		}
		added = append(added, entry)
	}
	list = append(list, added...)
	slices.SortStableFunc(list, func(a, b fleet.NonReadyResource) int {
		// Who is held back comes before those that are only on their way.
		return cmp.Or(cmp.Compare(b.State.Rank(), a.State.Rank()), compareHeld(isHeld[a.Name], isHeld[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	summary.NonReadyResources = list[:min(len(list), tally.MaxNonReady)]
}

func compareHeld(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

func worse(a, b fleet.BundleState) fleet.BundleState {
	if a.Rank() > b.Rank() {
		return a
	}
	return b
}
