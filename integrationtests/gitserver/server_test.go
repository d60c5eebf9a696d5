package gitserver_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
	"github.com/fairlead-dev/fairlead/integrationtests/gitserver/gitservertest"
)

// clone runs the system's git as a client, the judge of whether this is a git server.
func clone(t *testing.T, url string, environment ...string) (string, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	cmd := exec.CommandContext(context.Background(), "git", "clone", "--quiet", url, dir)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "HOME="+t.TempDir())
	cmd.Env = append(cmd.Env, environment...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Logf("git clone: %s", out)
	}
	return dir, err
}

func TestSystemGitClonesOverEveryTransport(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "team/app")
	repo.Commit(map[string]string{"a/b.txt": "hello", "run.sh": "#!/bin/sh\n", "link": "-> a/b.txt"})

	scratch := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(scratch, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, hosts := file("key", server.ClientKey()), file("known_hosts", []byte(server.KnownHosts()))
	for name, test := range map[string]struct{ url, environment string }{
		"http":  {repo.HTTPURL(), ""},
		"https": {repo.HTTPSURL(), "GIT_SSL_CAINFO=" + file("ca.pem", server.CABundle())},
		"ssh":   {repo.SSHURL(), "GIT_SSH_COMMAND=ssh -F none -i " + key + " -o StrictHostKeyChecking=yes -o UserKnownHostsFile=" + hosts},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := clone(t, test.url, test.environment)
			if err != nil {
				t.Fatal(err)
			}
			content, err := os.ReadFile(filepath.Join(dir, "link"))
			if err != nil || string(content) != "hello" {
				t.Errorf("link reads %q, %v", content, err)
			}
		})
	}
}

func TestPrivateRepositoryNeedsItsCredentials(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "private")
	repo.Commit(map[string]string{"a": "1"})
	repo.Private("user", "pass")
	if _, err := clone(t, repo.HTTPURL()); err == nil {
		t.Error("cloned without credentials")
	}
	if _, err := clone(t, strings.Replace(repo.HTTPURL(), "://", "://user:pass@", 1)); err != nil {
		t.Errorf("clone with credentials: %v", err)
	}
	if counts := server.Counts(); counts.Refused == 0 || counts.UploadPack == 0 {
		t.Errorf("counts %+v", counts)
	}
}

func TestFaultsAreForHTTPClientsToSee(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	repo.Commit(map[string]string{"a": "1"})
	server.SetFault(gitserver.Fault{Status: http.StatusTooManyRequests, RetryAfter: "7"})
	response, err := http.Get(repo.HTTPURL() + "/info/refs?service=git-upload-pack")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "7" {
		t.Errorf("status %d, Retry-After %q", response.StatusCode, response.Header.Get("Retry-After"))
	}
}

func TestCommitDirReplacesEverything(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	repo.Commit(map[string]string{"old": "1"})
	source := t.TempDir()
	if err := os.MkdirAll(filepath.Join(source, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "x", "new"), []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := repo.CommitDir(source, "Import"); err != nil {
		t.Fatal(err)
	}
	dir, err := clone(t, repo.HTTPURL())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "old")); err == nil {
		t.Error("old file is still there")
	}
	if _, err := os.Stat(filepath.Join(dir, "x", "new")); err != nil {
		t.Error(err)
	}
}
