package git

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/address"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/store"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/wire"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// Reasons of the errors of this package, fit for conditions; see packages wire, store, credential and
// address for theirs.
const (
	ReasonBranchNotFound   = "BranchNotFound"
	ReasonRevisionNotFound = store.ReasonRevisionNotFound
)

// suggestions is how many names an error offers.
const suggestions = 5

// pick returns the commit that a source means among what its repository has.
func pick(listing *wire.Listing, source Source, at address.Address) (string, error) {
	if len(listing.Branches) == 0 && len(listing.Tags) == 0 {
		return "", fault.New(fault.Stalled, ReasonBranchNotFound, "%s is empty: it has no branch yet", at)
	}
	if source.Revision != "" {
		return pickRevision(listing, source.Revision, at)
	}
	branch := cmp.Or(strings.TrimPrefix(source.Branch, "refs/heads/"), DefaultBranch)
	if commit, found := listing.Branches[branch]; found {
		return commit, nil
	}
	hint := ""
	if source.Branch == "" {
		hint = " (the default where none is named; set branch)"
	}
	return "", fault.New(fault.Stalled, ReasonBranchNotFound, "%s has no branch %q%s; it has %s",
		at, branch, hint, offer(branch, listing.Branches))
}

// pickRevision looks among tags first, as git does for a short name.
func pickRevision(listing *wire.Listing, revision string, at address.Address) (string, error) {
	tag, isTag := strings.CutPrefix(revision, "refs/tags/")
	branch, isBranch := strings.CutPrefix(revision, "refs/heads/")
	if commit, found := listing.Tags[tag]; found && !isBranch {
		return commit, nil
	}
	if commit, found := listing.Branches[branch]; found && !isTag {
		return commit, nil
	}
	names := maps.Clone(listing.Branches)
	maps.Copy(names, listing.Tags)
	return "", fault.New(fault.Stalled, ReasonRevisionNotFound,
		"%s has no tag or branch %q (a commit needs its full id of 40 digits); it has %s", at, revision, offer(revision, names))
}

// offer lists the names most like the one that was not found.
func offer(name string, present map[string]string) string {
	all := slices.Collect(maps.Keys(present))
	if len(all) == 0 {
		return "none"
	}
	distances := make(map[string]int, len(all))
	for _, candidate := range all {
		distances[candidate] = names.Distance(name, candidate)
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b))
	})
	text := strings.Join(all[:min(len(all), suggestions)], ", ")
	if len(all) > suggestions {
		text += ", …"
	}
	return text
}
