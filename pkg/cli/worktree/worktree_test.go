package worktree

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func gitRun(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.test", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.test")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.yaml": "a", "sub/b.yaml": "bb", "sub/deep/c.yaml": "ccc"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../a.yaml", filepath.Join(dir, "sub", "link")); err != nil {
		t.Fatal(err)
	}
	gitRun(t, dir, "init", "-q", "-b", "main")
	gitRun(t, dir, "add", "-A")
	gitRun(t, dir, "commit", "-q", "-m", "one")
	return dir
}

func TestTreeOfACommit(t *testing.T) {
	dir := checkout(t)
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	commit, err := At(filepath.Join(dir, "sub"), "main")
	if err != nil {
		t.Fatal(err)
	}
	if want := gitRun(t, dir, "rev-parse", "HEAD"); commit.ID != want || Head(filepath.Join(dir, "sub")) != want {
		t.Errorf("commit %s and %s, want %s", commit.ID, Head(dir), want)
	}
	// A link is no file that fstest could open like one, so it is looked at apart.
	if err := fstest.TestFS(noLinks{commit.FS}, "a.yaml", "sub/b.yaml", "sub/deep/c.yaml"); err != nil {
		t.Error(err)
	}
	if target, err := commit.FS.ReadLink("sub/link"); err != nil || target != "../a.yaml" {
		t.Errorf("link to %q, %v", target, err)
	}
	if info, err := commit.FS.Lstat("sub/link"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if _, err := At(dir, "nope"); err == nil || !strings.Contains(err.Error(), "find nope in the git repository") {
		t.Errorf("an unknown revision: %v", err)
	}
}

// noLinks hides links.
type noLinks struct{ fs.FS }

func (n noLinks) Open(name string) (fs.File, error) {
	file, err := n.FS.Open(name)
	if dir, ok := file.(*folder); ok {
		var kept []fs.DirEntry
		for _, entry := range dir.entries {
			if entry.Type()&fs.ModeSymlink == 0 {
				kept = append(kept, entry)
			}
		}
		dir.entries = kept
	}
	return file, err
}

func TestRoot(t *testing.T) {
	dir := checkout(t)
	want, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if root, err := Root(filepath.Join(dir, "sub", "deep")); err != nil || root != want {
		t.Errorf("root %s, %v, want %s", root, err, want)
	}
	outside := t.TempDir()
	if Head(outside) != "" {
		t.Error("a folder outside of git has a commit")
	}
	if _, err := Root(outside); err == nil {
		t.Error("a folder outside of git has a root")
	}
}
