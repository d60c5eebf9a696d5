package author

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/cli/project"
	"github.com/fairlead-dev/fairlead/pkg/cli/report"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/cli/worktree"
)

type diffFlags struct {
	project project.Flags
	refs    []string
	local   bool
	format  string
}

type diffReport struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	From       string   `json:"from"`
	To         string   `json:"to"`
	Changes    []change `json:"changes"`
}

// Diff returns `fleet diff`.
func Diff(s *session.Session) *cobra.Command {
	f := &diffFlags{}
	command := &cobra.Command{
		Use:   "diff [FOLDER] --ref A --ref B | [--ref A] --local",
		Short: "Show what changes on which clusters between two commits, or with what is not committed yet",
		Long: `Show what changes on which clusters between two commits of the git checkout, or between a commit (HEAD unless
--ref names another) and the working tree. Clusters with the same change are shown once. Values of Secrets are masked.

Exit codes: 0 nothing changes, 1 something changes, 2 failed.`,
		Example: `  fleet diff --local --clusters clusters.yaml
  fleet diff --ref main --ref my-branch -g gitrepo.yaml --clusters clusters.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			differs, err := f.run(command.Context(), s, folderOf(args))
			var exit *session.ExitError
			switch {
			case errors.As(err, &exit):
				return err
			case err != nil:
				return &session.ExitError{Code: session.ExitUsage, Err: err}
			case differs:
				return &session.ExitError{Code: session.ExitFailed}
			}
			return nil
		},
	}
	set := command.Flags()
	f.project.AddReading(set, s)
	f.project.AddTargeting(set)
	set.StringArrayVar(&f.refs, "ref", nil, "commit, branch or tag; twice: from, to")
	set.BoolVar(&f.local, "local", false, "compare with the working tree")
	set.StringVarP(&f.format, "output", "o", "", "json or yaml")
	return command
}

// version is one of the two trees.
type version struct {
	name  string
	files fs.FS
}

func (f *diffFlags) run(ctx context.Context, s *session.Session, dir string) (bool, error) {
	from, to, err := f.versions(dir)
	if err != nil {
		return false, err
	}
	request, err := f.project.Request(s, dir)
	if err != nil {
		return false, err
	}
	known, err := f.project.Inventory(ctx, s, request.Namespace)
	if err != nil {
		return false, err
	}
	before, beforeErr := f.read(ctx, s, from, request)
	after, afterErr := f.read(ctx, s, to, request)
	if before == nil || after == nil {
		return false, errors.Join(beforeErr, afterErr)
	}
	if err := f.project.CheckBundles(before, after); err != nil {
		return false, err
	}
	comparison := &comparison{
		ctx: ctx, before: f.project.Renderer(), after: f.project.Renderer(),
		complete: after.Complete(), warn: s.Warn,
	}
	for _, one := range []struct {
		result *bundle.Result
		into   *map[pairKey]project.Pair
	}{{before, &comparison.from}, {after, &comparison.to}} {
		pairs, err := project.Pairs(one.result.Bundles, known)
		if err != nil {
			return false, err
		}
		*one.into = byKey(pairs)
	}
	changes, compareErr := comparison.changes()
	shown := diffReport{APIVersion: report.Version, Kind: "Diff", From: from.name, To: to.name, Changes: changes}
	if err := report.Print(s, f.format, shown, shown.text); err != nil {
		return false, err
	}
	// What was wrong before is no news, and what mends it must not fail for it.
	if beforeErr != nil {
		s.Warn("%v", beforeErr)
	}
	return len(changes) > 0, errors.Join(afterErr, compareErr)
}

// read reads a tree. With a result, the error is about bundles that are missing in it.
func (f *diffFlags) read(ctx context.Context, s *session.Session, tree version, request bundle.Request) (*bundle.Result, error) {
	result, err := f.project.Read(ctx, s, tree.files, request)
	if err != nil {
		err = fmt.Errorf("%s: %w", tree.name, err)
	}
	return result, err
}

// versions returns the two trees that the flags name.
func (f *diffFlags) versions(dir string) (from, to version, err error) {
	refs := f.refs
	switch {
	case len(refs) > 2, len(refs) == 2 && f.local:
		return from, to, session.Usage("two versions are compared: --ref A --ref B, or --ref A --local")
	case len(refs) == 0 && !f.local:
		return from, to, session.Usage("say what to compare: --ref A --ref B, or --local for the working tree")
	case len(refs) == 0:
		refs = []string{"HEAD"}
	}
	if _, err := project.Folder(dir); err != nil {
		return from, to, err
	}
	if from, err = committed(dir, refs[0]); err != nil {
		return from, to, err
	}
	if len(refs) == 2 {
		to, err = committed(dir, refs[1])
		return from, to, err
	}
	files, err := project.Folder(dir)
	return from, version{name: "working tree", files: files}, err
}

// committed returns what a folder of the checkout holds at a revision.
func committed(dir, revision string) (version, error) {
	root, err := worktree.Root(dir)
	if err != nil {
		return version{}, err
	}
	absolute, err := filepath.Abs(dir)
	if err == nil {
		absolute, err = filepath.EvalSymlinks(absolute)
	}
	if err != nil {
		return version{}, fmt.Errorf("find %s: %w", dir, err)
	}
	relative, err := filepath.Rel(root, absolute)
	if err != nil {
		return version{}, fmt.Errorf("find %s in the git repository: %w", dir, err)
	}
	commit, err := worktree.At(dir, revision)
	if err != nil {
		return version{}, err
	}
	files, err := fs.Sub(commit.FS, filepath.ToSlash(relative))
	if err != nil {
		return version{}, fmt.Errorf("find %s at %s: %w", dir, revision, err)
	}
	return version{name: revision, files: files}, nil
}

func (r diffReport) text() string {
	var out strings.Builder
	for _, one := range r.Changes {
		fmt.Fprintf(&out, "Bundle %s on %s: %s\n", one.Bundle, strings.Join(one.Clusters, ", "), one.What)
		for _, object := range one.Objects {
			out.WriteString(object.Diff)
		}
		out.WriteString("\n")
	}
	return out.String()
}
