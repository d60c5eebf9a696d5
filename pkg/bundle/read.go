package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// Read makes the Bundles of a tree. With a result, an error joins Result.Failed: the bundles in the
// result are whole. Without a result, nothing could be made. Charts may be nil; bundles that need it fail.
func Read(ctx context.Context, files fs.FS, req Request, charts Charts) (*Result, error) {
	r := &reader{tree: tree.New(files), req: req, charts: charts, result: &Result{}, matched: map[string]bool{}}
	candidates, err := r.candidates()
	if err != nil {
		return nil, fmt.Errorf("search %s for bundles: %w", r.places(), err)
	}
	for _, candidate := range candidates {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read %s: %w", candidate.dir, err)
		}
		if r.add(ctx, candidate) {
			r.matched[candidate.from] = true
		}
	}
	r.rejectDuplicates()
	if len(req.Bundles) == 0 {
		r.unmatched()
	}
	result := r.result
	if len(result.Bundles) == 0 && len(result.Failed) == 0 {
		return nil, r.noBundles(candidates)
	}
	slices.SortFunc(result.Bundles, func(a, b Bundle) int { return strings.Compare(a.Object.Name, b.Object.Name) })
	return result, result.Err()
}

// noBundles says what is missing: folders that could be bundles have nothing to deploy, or there are none.
func (r *reader) noBundles(candidates []candidate) error {
	if len(candidates) == 0 {
		return fault.New(fault.Stalled, ReasonNoBundles, "no bundle in %s: a bundle is a folder with fleet.yaml, or with YAML files below a path", r.places())
	}
	const shown = 5
	var empty []string
	for _, c := range candidates[:min(shown, len(candidates))] {
		empty = append(empty, c.dir)
	}
	if more := len(candidates) - shown; more > 0 {
		empty = append(empty, fmt.Sprintf("%d more", more))
	}
	return fault.New(fault.Stalled, ReasonNoBundles, "no bundle in %s: there are no files to deploy in %s, or .fleetignore leaves all of them out", r.places(), strings.Join(empty, ", "))
}

type reader struct {
	tree   *tree.Tree
	req    Request
	charts Charts
	result *Result
	// matched are the requested paths that led to a bundle.
	matched map[string]bool
}

// places names what was searched, for messages.
func (r *reader) places() string {
	var all []string
	for _, entry := range r.req.Bundles {
		all = append(all, path.Join(entry.Base, entry.Options))
	}
	if len(all) == 0 {
		all = r.paths()
	}
	return strings.Join(all, ", ")
}

func (r *reader) paths() []string {
	if len(r.req.Paths) == 0 {
		return []string{"."}
	}
	return r.req.Paths
}

// add makes one bundle and puts it, or its failure, in the result. It says whether there was one.
func (r *reader) add(ctx context.Context, c candidate) bool {
	options := c.options
	if r.req.NameByFolder {
		options = ""
	}
	b := &builder{reader: r, candidate: c, name: names.Bundle(r.req.Name, c.dir, options),
		packed: map[string]fleet.BundleResource{}, sizes: map[string]int{}}
	made, err := b.build(ctx)
	r.result.Warnings = append(r.result.Warnings, b.warnings...)
	switch {
	case errors.Is(err, errEmpty):
		r.result.Warnings = append(r.result.Warnings, Warning{File: c.dir, Message: "the folder has no files to deploy and gives no bundle"})
		return false
	case err != nil:
		r.result.Failed = append(r.result.Failed, Failure{Dir: c.dir, BundleName: b.name, Err: err})
	default:
		r.result.Bundles = append(r.result.Bundles, *made)
	}
	return true
}

// rejectDuplicates moves all bundles that share a name to the failures: there is no right one among them.
func (r *reader) rejectDuplicates() {
	dirs := map[string][]string{}
	for _, b := range r.result.Bundles {
		dirs[b.Object.Name] = append(dirs[b.Object.Name], b.source())
	}
	r.result.Bundles = slices.DeleteFunc(r.result.Bundles, func(b Bundle) bool {
		name := b.Object.Name
		if len(dirs[name]) < 2 {
			return false
		}
		err := fault.New(fault.Stalled, ReasonDuplicateName, "the name %q is given to %s; a name must be unique", name, strings.Join(dirs[name], " and "))
		r.result.Failed = append(r.result.Failed, Failure{Dir: b.Dir, BundleName: name, Err: err})
		return true
	})
}

// source is the file or folder that a bundle is made from.
func (b Bundle) source() string {
	if b.File != "" {
		return b.File
	}
	return b.Dir
}

func (r *reader) unmatched() {
	for _, entry := range r.paths() {
		if r.matched[entry] || slices.Contains(r.result.UnmatchedPaths, entry) {
			continue
		}
		r.result.UnmatchedPaths = append(r.result.UnmatchedPaths, entry)
		r.result.Warnings = append(r.result.Warnings, Warning{File: entry, Message: "the path matches nothing that is a bundle; nothing is removed while that is so"})
	}
}

// hubDefaults are the targets of a GitRepo that names none.
func hubDefaults() []fleet.ClusterTarget {
	return []fleet.ClusterTarget{{Name: "default", ClusterGroup: "default"}}
}
