package controller

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// wanted is a Bundle as the source has it, with the data of its values Secret.
type wanted struct {
	bundle  *fleet.Bundle
	values  map[string][]byte
	summary content.Summary
}

// plan is what has to be written so that the hub holds what the source says.
type plan struct {
	create []wanted
	update []wanted
	delete []*fleet.Bundle
}

func (p plan) empty() bool {
	return len(p.create)+len(p.update)+len(p.delete) == 0
}

// planBundles compares the wanted Bundles with the existing ones of the namespace (trimmed). It refuses
// the whole plan when a wanted name belongs to somebody else. Nothing is deleted unless prune is set.
func planBundles(repo string, want []wanted, existing map[string]*fleet.Bundle, prune bool) (plan, error) {
	var result plan
	names := map[string]bool{}
	for _, bundle := range want {
		name := bundle.bundle.Name
		names[name] = true
		current, exists := existing[name]
		switch {
		case !exists:
			result.create = append(result.create, bundle)
		case !current.DeletionTimestamp.IsZero():
			return plan{}, fault.New(fault.Waiting, "BundleTerminating",
				"bundle %s is still being deleted; it is made anew once it is gone", name)
		case current.Labels[fleet.RepoLabel] != repo:
			return plan{}, fault.New(fault.Stalled, "BundleOwnedByOther",
				"bundle %s already exists and belongs to %s; rename the folder, set name: in its fleet.yaml, or delete the other bundle",
				name, owner(current))
		case changed(current, bundle):
			result.update = append(result.update, bundle)
		}
	}
	if !prune {
		return result, nil
	}
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		bundle := existing[name]
		if !names[name] && bundle.Labels[fleet.RepoLabel] == repo && bundle.DeletionTimestamp.IsZero() {
			result.delete = append(result.delete, bundle)
		}
	}
	return result, nil
}

func owner(bundle *fleet.Bundle) string {
	if repo := bundle.Labels[fleet.RepoLabel]; repo != "" {
		return fmt.Sprintf("the GitRepo %s", repo)
	}
	if op := bundle.Labels[fleet.HelmOpLabel]; op != "" {
		return fmt.Sprintf("the HelmOp %s", op)
	}
	return "nobody known: it was made by hand"
}

func changed(current *fleet.Bundle, want wanted) bool {
	summary, _ := content.SummaryOf(current)
	return summary.SpecDigest != want.summary.SpecDigest || !maps.Equal(withoutCommit(current.Labels), withoutCommit(want.bundle.Labels))
}

// withoutCommit leaves the commit label out of the comparison: a commit that does not touch a bundle
// must not write it.
func withoutCommit(labels map[string]string) map[string]string {
	kept := maps.Clone(labels)
	delete(kept, fleet.CommitLabel)
	if kept == nil {
		kept = map[string]string{}
	}
	return kept
}

func sortWanted(bundles []wanted) {
	slices.SortFunc(bundles, func(a, b wanted) int { return cmp.Compare(a.bundle.Name, b.bundle.Name) })
}
