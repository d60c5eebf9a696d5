package git_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver/gitservertest"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git"
)

func addSubmodule(t *testing.T, repo gitservertest.Repo, path, url, commit string) string {
	t.Helper()
	changed, err := repo.Submodule(path, url, commit, "Add submodule")
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func TestSubmodulesAreFolders(t *testing.T) {
	server := gitservertest.Start(t)
	inner := gitservertest.NewRepo(t, server, "team/inner")
	innerCommit := inner.Commit(map[string]string{"deep.txt": "deep"})
	lib := gitservertest.NewRepo(t, server, "team/lib")
	lib.Commit(map[string]string{"lib.txt": "lib", "up": "-> ../app.txt"})
	libCommit := addSubmodule(t, lib, "vendor/inner", "../inner.git", innerCommit)
	app := gitservertest.NewRepo(t, server, "team/app")
	app.Commit(map[string]string{"app.txt": "app", "link": "-> lib/lib.txt"})
	commit := addSubmodule(t, app, "lib", "../lib.git", libCommit)
	for _, repo := range []gitservertest.Repo{inner, lib, app} {
		repo.Private("user", "pass")
	}

	service := newService(t, nil)
	tree := checkout(t, service, git.Source{URL: app.HTTPURL(), Auth: git.Auth{Username: "user", Password: "pass"}}, commit)
	server.ResetCounts()
	wantFile(t, tree, "app.txt", "app")
	if info, err := fs.Stat(tree, "lib"); err != nil || !info.IsDir() {
		t.Errorf("submodule is %v, %v", info, err)
	}
	if got := server.Counts().InfoRefs; got != 0 {
		t.Errorf("a submodule that nobody reads was asked for %d times", got)
	}
	wantFile(t, tree, "lib/lib.txt", "lib")
	wantFile(t, tree, "link", "lib")
	wantFile(t, tree, "lib/up", "app")
	wantFile(t, tree, "lib/vendor/inner/deep.txt", "deep")
	if entries, err := fs.ReadDir(tree, "lib"); err != nil || len(entries) != 4 {
		t.Errorf("submodule lists %v, %v", entries, err)
	}
}

func TestSubmoduleErrorsAreOfTheirPathOnly(t *testing.T) {
	server := gitservertest.Start(t)
	app := gitservertest.NewRepo(t, server, "team/app")
	app.Commit(map[string]string{"app.txt": "app"})
	missing := strings.Repeat("ab", 20)
	addSubmodule(t, app, "gone", "../gone.git", missing)
	addSubmodule(t, app, "local", "file:///etc", missing)
	addSubmodule(t, app, "helper", "ext::sh -c id", missing)
	commit := addSubmodule(t, app, "self", "./../app.git", missing)

	tree := checkout(t, newService(t, nil), git.Source{URL: app.HTTPURL()}, commit)
	wantFile(t, tree, "app.txt", "app")
	for path, reason := range map[string]string{"gone": "RepositoryNotFound", "local": "InvalidURL", "helper": "InvalidURL", "self": "RevisionNotFound"} {
		_, err := fs.ReadDir(tree, path)
		wantFault(t, err, fault.Stalled, reason, "submodule "+path)
	}
}

func TestCredentialStaysOnItsHost(t *testing.T) {
	server, other := gitservertest.Start(t), gitservertest.Start(t)
	lib := gitservertest.NewRepo(t, other, "lib")
	libCommit := lib.Commit(map[string]string{"a": "1"})
	lib.Private("user", "pass")
	app := gitservertest.NewRepo(t, server, "app")
	app.Commit(map[string]string{"a": "1"})
	commit := addSubmodule(t, app, "lib", lib.HTTPURL(), libCommit)
	app.Private("user", "pass")

	tree := checkout(t, newService(t, nil), git.Source{URL: app.HTTPURL(), Auth: git.Auth{Username: "user", Password: "pass"}}, commit)
	_, err := fs.ReadFile(tree, "lib/a")
	wantFault(t, err, fault.Stalled, "AuthenticationFailed", "asks for a credential")
}
