package gitserver

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Repo is a repository of the server, with a work tree of its own in which commits are made.
type Repo struct {
	server *Server
	name   string
	mu     sync.Mutex
}

// Repo makes an empty repository whose first branch is master.
func (s *Server) Repo(name string) (*Repo, error) {
	r := &Repo{server: s, name: name}
	if err := os.MkdirAll(r.workTree(), 0o755); err != nil {
		return nil, fmt.Errorf("make work tree of %s: %w", name, err)
	}
	if _, err := r.run("init", "--quiet", "--bare", "--initial-branch=master", r.bare()); err != nil {
		return nil, err
	}
	for key, value := range map[string]string{
		"user.name": "Git Server", "user.email": "gitserver@example.com",
		"gc.auto": "0", "core.autocrlf": "false", "core.symlinks": "true",
		// The server only listens on loopback: whoever runs the demo may push.
		"http.receivepack": "true",
	} {
		if err := r.Config(key, value); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Private makes HTTP clients of the repository show these credentials; two empty strings lift it.
func (r *Repo) Private(username, password string) {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	r.server.access[r.name] = access{username, password}
}

// HTTPURL returns the address of the repository over plain HTTP.
func (r *Repo) HTTPURL() string { return r.server.HTTPURL() + "/" + r.name + ".git" }

// HTTPSURL returns the address of the repository over HTTPS.
func (r *Repo) HTTPSURL() string { return r.server.HTTPSURL() + "/" + r.name + ".git" }

// SSHURL returns the address of the repository over SSH.
func (r *Repo) SSHURL() string { return r.server.SSHURL() + "/" + r.name + ".git" }

// Config sets a configuration value of the repository, for instance uploadpack.allowAnySHA1InWant.
func (r *Repo) Config(key, value string) error {
	_, err := r.run("--git-dir="+r.bare(), "config", key, value)
	return err
}

// Commit writes files (path to content) over what the current branch holds, commits and returns the
// commit. A file is executable when its content starts with "#!"; content "-> target" makes a
// symbolic link.
func (r *Repo) Commit(files map[string]string, message string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for path, content := range files {
		if err := r.write(path, content); err != nil {
			return "", fmt.Errorf("write %s: %w", path, err)
		}
	}
	return r.commit(message)
}

// CommitDir makes the current branch hold exactly the files of a folder, commits and returns the
// commit. A folder named .git in it is left out.
func (r *Repo) CommitDir(dir, message string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.clear(); err != nil {
		return "", err
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == ".git" {
			return filepath.SkipDir
		}
		return r.copy(dir, path, entry)
	})
	if err != nil {
		return "", fmt.Errorf("copy %s: %w", dir, err)
	}
	return r.commit(message)
}

// Remove removes files and folders, commits and returns the commit.
func (r *Repo) Remove(message string, paths ...string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range paths {
		if err := os.RemoveAll(filepath.Join(r.workTree(), filepath.FromSlash(path))); err != nil {
			return "", fmt.Errorf("remove %s: %w", path, err)
		}
	}
	return r.commit(message)
}

// Submodule records commit of the repository at url as a submodule at path, commits and returns the
// commit.
func (r *Repo) Submodule(path, url, commit, message string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	modules := filepath.Join(r.workTree(), ".gitmodules")
	if _, err := r.git("config", "--file", modules, "submodule."+path+".path", path); err != nil {
		return "", err
	}
	if _, err := r.git("config", "--file", modules, "submodule."+path+".url", url); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Join(r.workTree(), filepath.FromSlash(path)), 0o755); err != nil {
		return "", fmt.Errorf("make folder of submodule: %w", err)
	}
	if _, err := r.git("add", ".gitmodules"); err != nil {
		return "", err
	}
	if _, err := r.git("update-index", "--add", "--cacheinfo", "160000,"+commit+","+path); err != nil {
		return "", err
	}
	return r.commitIndex(message)
}

// Branch makes a branch at the current commit when it does not exist, and goes to it: later commits
// land there.
func (r *Repo) Branch(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.git("rev-parse", "--quiet", "--verify", "refs/heads/"+name); err != nil {
		if _, err := r.git("branch", name); err != nil {
			return err
		}
	}
	_, err := r.git("checkout", "--quiet", "--force", name)
	return err
}

// Tag makes a tag at the current commit; with a message it is an annotated one.
func (r *Repo) Tag(name, message string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	args := []string{"tag", name}
	if message != "" {
		args = []string{"tag", "--annotate", "--message", message, name}
	}
	_, err := r.git(args...)
	return err
}

// Head returns the commit of the current branch.
func (r *Repo) Head() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.git("rev-parse", "HEAD")
}

func (r *Repo) bare() string {
	return filepath.Join(r.server.root(), filepath.FromSlash(r.name)+".git")
}
func (r *Repo) workTree() string {
	return filepath.Join(r.server.dir, "work", filepath.FromSlash(r.name))
}

func (r *Repo) write(path, content string) error {
	file := filepath.Join(r.workTree(), filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if target, isLink := strings.CutPrefix(content, "-> "); isLink {
		return os.Symlink(target, file)
	}
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(content, "#!") {
		mode = 0o755
	}
	return os.WriteFile(file, []byte(content), mode)
}

func (r *Repo) copy(dir, path string, entry fs.DirEntry) error {
	relative, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	target := filepath.Join(r.workTree(), relative)
	switch {
	case entry.IsDir():
		return os.MkdirAll(target, 0o755)
	case entry.Type()&fs.ModeSymlink != 0:
		link, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(link, target)
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(target, content, info.Mode().Perm()|0o600)
}

func (r *Repo) clear() error {
	entries, err := os.ReadDir(r.workTree())
	if err != nil {
		return fmt.Errorf("read work tree: %w", err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(r.workTree(), entry.Name())); err != nil {
			return fmt.Errorf("clear work tree: %w", err)
		}
	}
	return nil
}

func (r *Repo) commit(message string) (string, error) {
	if _, err := r.git("add", "--all", "--force"); err != nil {
		return "", err
	}
	return r.commitIndex(message)
}

func (r *Repo) commitIndex(message string) (string, error) {
	if _, err := r.git("commit", "--quiet", "--allow-empty", "--message", message); err != nil {
		return "", err
	}
	return r.git("rev-parse", "HEAD")
}

// git runs a command in the work tree; the repository itself stays bare for whoever fetches.
func (r *Repo) git(args ...string) (string, error) {
	return r.run(append([]string{"--git-dir=" + r.bare(), "--work-tree=" + r.workTree()}, args...)...)
}

func (r *Repo) run(args ...string) (string, error) {
	cmd := r.server.command(context.Background(), r.server.git, args...)
	if _, err := os.Stat(r.workTree()); err == nil {
		cmd.Dir = r.workTree()
	}
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return text, nil
}
