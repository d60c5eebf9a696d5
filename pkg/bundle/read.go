package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/charts"
	"github.com/fairlead-dev/fairlead/pkg/bundle/kustomization"
	"github.com/fairlead-dev/fairlead/pkg/bundle/layout"
	"github.com/fairlead-dev/fairlead/pkg/bundle/resources"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// Read makes the Bundles of a tree and returns them all. With a result, an error joins Result.Failed: the
// bundles in the result are whole. Without a result, nothing could be made. The source of charts may be
// nil; bundles that need it fail.
func Read(ctx context.Context, files fs.FS, req Request, source charts.Source) (*Result, error) {
	reading, err := Open(ctx, files, req, source)
	if err != nil {
		return nil, err
	}
	var all []Bundle
	result, err := reading.Each(ctx, func(made Bundle) error {
		all = append(all, made)
		return nil
	})
	if result != nil {
		result.Bundles = all
	}
	return result, err
}

// Reading is a tree whose bundles are made one at a time, so that no more than one needs to be in memory.
// It is for one goroutine.
type Reading struct {
	*reader
	entries []*entry
}

// entry is a folder that should be a bundle, and what became of it.
type entry struct {
	layout.Candidate
	name string
	// builder has read the options; nil when they are large or used up, and are read anew.
	builder  *builder
	warnings []Warning
	made     bool
	err      error
}

// keptOptions is the size of files of options, in bytes, up to which they are kept from one look to the next.
const keptOptions = 64 << 10

// Open finds the bundles of a tree and reads their options.
func Open(ctx context.Context, files fs.FS, req Request, source charts.Source) (*Reading, error) {
	r := &Reading{reader: &reader{tree: tree.New(files), req: req, charts: source, kept: map[string][]byte{}}}
	r.closures = kustomization.NewClosures(r.tree)
	candidates, err := r.candidates()
	if err != nil {
		return nil, fmt.Errorf("search %s for bundles: %w", r.places(), err)
	}
	for _, candidate := range candidates {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read %s: %w", candidate.Dir, err)
		}
		b := r.builder(candidate)
		found := &entry{Candidate: candidate}
		if found.err = b.readSpec(); found.err == nil && b.specSize <= keptOptions {
			found.builder = b
		}
		found.name, found.warnings = b.name, b.warnings
		r.entries = append(r.entries, found)
	}
	return r, nil
}

// Each makes the Bundles in the order of their names and hands them on; an error of take ends it. The result
// is as that of Read, without the Bundles.
func (r *Reading) Each(ctx context.Context, take func(Bundle) error) (*Result, error) {
	result := &Result{}
	named := map[string][]*entry{}
	for _, e := range r.entries {
		if e.err == nil {
			named[e.name] = append(named[e.name], e)
		}
	}
	taken := 0
	for _, name := range slices.Sorted(maps.Keys(named)) {
		made, err := r.only(ctx, named[name])
		if err != nil {
			return nil, err
		}
		if made == nil {
			continue
		}
		if err := take(*made); err != nil {
			return nil, err
		}
		taken++
	}
	r.report(result)
	if taken == 0 && len(result.Failed) == 0 {
		return nil, r.noBundles()
	}
	return result, result.Err()
}

// only makes the bundle of a name. When several have it none is right: all of them are failures.
func (r *Reading) only(ctx context.Context, entries []*entry) (*Bundle, error) {
	var made *Bundle
	var sources []string
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read %s: %w", e.Dir, err)
		}
		one := r.make(ctx, e)
		if one == nil {
			continue
		}
		sources = append(sources, one.source())
		if made = one; len(sources) > 1 {
			made = nil
		}
	}
	if len(sources) < 2 {
		return made, nil
	}
	for _, e := range entries {
		if e.made {
			e.err = fault.New(fault.Stalled, ReasonDuplicateName, "the name %q is given to %s; a name must be unique", e.name, strings.Join(sources, " and "))
		}
	}
	return nil, nil
}

// make makes the bundle of a folder and notes what became of it.
func (r *Reading) make(ctx context.Context, e *entry) *Bundle {
	b := e.builder
	e.builder = nil // a bundle is made of its options, which are others then
	if b == nil {
		b = r.builder(e.Candidate)
	}
	made, err := b.build(ctx)
	e.warnings, e.err, e.made = b.warnings, err, err == nil
	return made
}

// Again makes the bundle of a name once more.
func (r *Reading) Again(ctx context.Context, name string) (*Bundle, error) {
	for _, e := range r.entries {
		if e.name == name && e.made && e.err == nil {
			return r.builder(e.Candidate).build(ctx)
		}
	}
	return nil, fmt.Errorf("read bundle %s: there is none of this name", name)
}

// report puts into the result what is to be said, in the order of the folders.
func (r *Reading) report(result *Result) {
	matched := map[string]bool{}
	var twice []Failure
	for _, e := range r.entries {
		result.Warnings = append(result.Warnings, e.warnings...)
		failure := Failure{Dir: e.Dir, BundleName: e.name, Err: e.err}
		switch {
		case errors.Is(e.err, errEmpty) && len(r.req.Bundles) > 0:
			listed := path.Join(e.Dir, e.Options)
			result.UnmatchedPaths = append(result.UnmatchedPaths, listed)
			result.Warnings = append(result.Warnings, Warning{File: listed, Message: "the folder has no files to deploy and gives no bundle; nothing is removed while that is so"})
			continue
		case errors.Is(e.err, errEmpty):
			result.Warnings = append(result.Warnings, Warning{File: e.Dir, Message: "the folder has no files to deploy and gives no bundle"})
			continue
		case e.err != nil && e.made:
			twice = append(twice, failure)
		case e.err != nil:
			result.Failed = append(result.Failed, failure)
		}
		for _, from := range e.From {
			matched[from] = true
		}
	}
	result.Failed = append(result.Failed, twice...)
	if len(r.req.Bundles) == 0 {
		r.unmatched(result, matched)
	}
}

// noBundles says what is missing: folders that could be bundles have nothing to deploy, or there are none.
func (r *Reading) noBundles() error {
	if len(r.entries) == 0 {
		return fault.New(fault.Stalled, ReasonNoBundles, "no bundle in %s: a bundle is a folder with fleet.yaml, or with YAML files below a path", r.places())
	}
	const shown = 5
	var empty []string
	for _, e := range r.entries[:min(shown, len(r.entries))] {
		empty = append(empty, e.Dir)
	}
	if more := len(r.entries) - shown; more > 0 {
		empty = append(empty, fmt.Sprintf("%d more", more))
	}
	return fault.New(fault.Stalled, ReasonNoBundles, "no bundle in %s: there are no files to deploy in %s, or .fleetignore leaves all of them out", r.places(), strings.Join(empty, ", "))
}

type reader struct {
	tree     *tree.Tree
	req      Request
	charts   charts.Source
	closures *kustomization.Closures
	// kept are small files of shared bases.
	kept     map[string][]byte
	keptSize int
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

// candidates returns the folders that should be bundles.
func (r *reader) candidates() ([]layout.Candidate, error) {
	if len(r.req.Bundles) > 0 {
		return layout.Listed(r.req.Bundles)
	}
	return layout.Search(r.tree, r.paths())
}

func (r *reader) paths() []string {
	if len(r.req.Paths) == 0 {
		return []string{"."}
	}
	return r.req.Paths
}

// builder returns the builder of a folder, which has read nothing yet.
func (r *reader) builder(c layout.Candidate) *builder {
	options := c.Options
	if r.req.NameByFolder {
		options = ""
	}
	return &builder{reader: r, Candidate: c, name: names.Bundle(r.req.Name, c.Dir, options), files: resources.New(c.Dir)}
}

// source is the file or folder that a bundle is made from.
func (b Bundle) source() string {
	if b.File != "" {
		return b.File
	}
	return b.Dir
}

func (r *reader) unmatched(result *Result, matched map[string]bool) {
	for _, entry := range r.paths() {
		if matched[entry] || slices.Contains(result.UnmatchedPaths, entry) {
			continue
		}
		result.UnmatchedPaths = append(result.UnmatchedPaths, entry)
		result.Warnings = append(result.Warnings, Warning{File: entry, Message: "the path matches nothing that is a bundle; nothing is removed while that is so"})
	}
}

// hubDefaults are the targets of a GitRepo that names none.
func hubDefaults() []fleet.ClusterTarget {
	return []fleet.ClusterTarget{{Name: "default", ClusterGroup: "default"}}
}
