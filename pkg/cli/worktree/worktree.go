package worktree

import (
	"fmt"
	"path/filepath"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
)

// Head returns the commit that the checkout around a folder is at, or "" where there is none.
func Head(dir string) string {
	repository, err := open(dir)
	if err != nil {
		return ""
	}
	head, err := repository.Head()
	if err != nil {
		return ""
	}
	return head.Hash().String()
}

// Root returns the top folder of the checkout around a folder.
func Root(dir string) (string, error) {
	repository, err := open(dir)
	if err != nil {
		return "", fmt.Errorf("open git repository at %s: %w", dir, err)
	}
	checkout, err := repository.Worktree()
	if err != nil {
		return "", fmt.Errorf("open git repository at %s: %w", dir, err)
	}
	root, err := filepath.EvalSymlinks(checkout.Filesystem.Root())
	if err != nil {
		return "", fmt.Errorf("open git repository at %s: %w", dir, err)
	}
	return root, nil
}

// Commit is a commit of a checkout.
type Commit struct {
	// ID in hex.
	ID string
	// FS is the tree of files.
	FS *FS
}

// At returns the commit that a revision (branch, tag, id, HEAD~2, …) names.
func At(dir, revision string) (Commit, error) {
	repository, err := open(dir)
	if err != nil {
		return Commit{}, fmt.Errorf("open git repository at %s: %w", dir, err)
	}
	hash, err := repository.ResolveRevision(plumbing.Revision(revision))
	if err != nil {
		return Commit{}, fmt.Errorf("find %s in the git repository: %w", revision, err)
	}
	commit, err := repository.CommitObject(*hash)
	if err != nil {
		return Commit{}, fmt.Errorf("read commit %s: %w", revision, err)
	}
	tree, err := commit.Tree()
	if err != nil {
		return Commit{}, fmt.Errorf("read commit %s: %w", revision, err)
	}
	return Commit{ID: hash.String(), FS: newFS(repository, tree)}, nil
}

func open(dir string) (*git.Repository, error) {
	return git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
}
