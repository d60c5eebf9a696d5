// Package gitservertest gives tests a git server that ends with them. It adds nothing to
// gitserver but failing the test; start reading at Start.
package gitservertest

import (
	"testing"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
)

// Start starts a server in a folder of the test and stops it when the test ends.
func Start(t testing.TB) *gitserver.Server {
	t.Helper()
	server, err := gitserver.Start(gitserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatalf("start git server: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("stop git server: %v", err)
		}
	})
	return server
}

// Repo is a repository whose methods fail the test instead of returning an error.
type Repo struct {
	*gitserver.Repo
	t testing.TB
}

// NewRepo makes an empty repository.
func NewRepo(t testing.TB, server *gitserver.Server, name string) Repo {
	t.Helper()
	repo, err := server.Repo(name)
	if err != nil {
		t.Fatalf("make repository %s: %v", name, err)
	}
	return Repo{Repo: repo, t: t}
}

// Commit writes files over the current branch and returns the new commit.
func (r Repo) Commit(files map[string]string) string {
	r.t.Helper()
	commit, err := r.Repo.Commit(files, "Change files")
	if err != nil {
		r.t.Fatalf("commit: %v", err)
	}
	return commit
}

// Branch goes to a branch, made when missing.
func (r Repo) Branch(name string) {
	r.t.Helper()
	if err := r.Repo.Branch(name); err != nil {
		r.t.Fatalf("branch %s: %v", name, err)
	}
}

// Tag tags the current commit; with a message the tag is an annotated one.
func (r Repo) Tag(name, message string) {
	r.t.Helper()
	if err := r.Repo.Tag(name, message); err != nil {
		r.t.Fatalf("tag %s: %v", name, err)
	}
}

// Config sets a configuration value of the repository.
func (r Repo) Config(key, value string) {
	r.t.Helper()
	if err := r.Repo.Config(key, value); err != nil {
		r.t.Fatalf("configure %s: %v", key, err)
	}
}
