package sources

import (
	"cmp"
	"context"
	"errors"
	"slices"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	contentstore "github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/bundles"
)

// Reading is a commit that is being read.
type Reading struct {
	bundles *bundle.Reading
	access  *registry.Access
	close   []func()
}

// End lets go of what is read from.
func (r *Reading) End() {
	for _, end := range slices.Backward(r.close) {
		end()
	}
}

// keptWhole is how much of the Bundles of one commit stays in memory between reading and writing, in bytes. What
// is beyond is read once more if it has to be written.
const keptWhole = 8 << 20

// Wanted makes the Bundles of the commit, one at a time, and returns them in the order of their names.
func (r *Reading) Wanted(ctx context.Context) ([]bundles.Wanted, *bundle.Result, error) {
	var want []bundles.Wanted
	var problems []error
	kept := 0
	result, err := r.bundles.Each(ctx, func(made bundle.Bundle) error {
		name := made.Object.Name
		one, err := r.detach(made)
		if err != nil {
			problems = append(problems, err)
			return nil
		}
		if size := one.Size(); kept+size <= keptWhole {
			kept += size
		} else {
			one = one.Named(func(ctx context.Context) (bundles.Wanted, error) {
				again, err := r.bundles.Again(ctx, name)
				if err != nil {
					return bundles.Wanted{}, err
				}
				return r.detach(*again)
			})
		}
		want = append(want, one)
		return nil
	})
	if err != nil {
		return nil, result, err
	}
	sortWanted(want)
	return want, result, errors.Join(problems...)
}

// detach says where the files of a Bundle go.
func (r *Reading) detach(made bundle.Bundle) (bundles.Wanted, error) {
	// The bundle controller needs it, and would have to write the bundle once more.
	made.Object.Finalizers = []string{fleet.BundleFinalizer}
	files, err := contentstore.Detach(made.Object, r.access)
	if err != nil {
		return bundles.Wanted{}, err
	}
	summary, err := content.Summarize(made.Object.Spec)
	return bundles.Wanted{Bundle: made.Object, Values: made.Values, Files: files, Summary: summary}, err
}

func sortWanted(want []bundles.Wanted) {
	slices.SortFunc(want, func(a, b bundles.Wanted) int { return cmp.Compare(a.Bundle.Name, b.Bundle.Name) })
}
