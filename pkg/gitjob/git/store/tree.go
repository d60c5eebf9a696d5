package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const (
	// maxLinks is how many symbolic links one path may lead through, as on Linux.
	maxLinks = 40
	// maxLink is the longest target of a symbolic link that is read.
	maxLink = 4096
	// maxFolders is how many folders a tree remembers.
	maxFolders = 2048
	modules    = ".gitmodules"
)

// ErrOutside is the error of a symbolic link that leaves the commit.
var ErrOutside = errors.New("symbolic link leads out of the repository")

// Mount returns the tree of a submodule: commit of the repository that url means.
type Mount func(url, commit string) (*Tree, error)

// Tree is one commit as a file system. It implements fs.FS with ReadDirFS, ReadFileFS, StatFS and
// ReadLinkFS, follows symbolic links inside the commit, and shows submodules as folders, fetched when
// something in them is read. It is safe for several goroutines, and must be closed.
type Tree struct {
	store   *Store
	commit  string
	root    plumbing.Hash
	maxFile int64
	mount   Mount

	mu      sync.Mutex
	folders map[plumbing.Hash][]node
	mounts  map[string]*Tree
	closed  bool
}

// node is one entry of a folder.
type node struct {
	name string
	mode filemode.FileMode
	id   plumbing.Hash
	// owner is the tree whose object this is; path is relative to that tree.
	owner *Tree
	path  string
}

// Open returns the tree of a commit that the store has. Files larger than maxFile bytes are listed,
// and refused when read.
func (s *Store) Open(commit string, maxFile int64, mount Mount) (*Tree, error) {
	if !s.use() {
		return nil, fmt.Errorf("open commit %s: %w", commit, fs.ErrClosed)
	}
	s.mu.Lock()
	root, err := s.root(plumbing.NewHash(commit))
	s.mu.Unlock()
	if err != nil {
		s.done()
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			err = fs.ErrNotExist
		}
		return nil, fmt.Errorf("open commit %s: %w", commit, err)
	}
	return &Tree{
		store: s, commit: commit, root: root, maxFile: maxFile, mount: mount,
		folders: map[plumbing.Hash][]node{}, mounts: map[string]*Tree{},
	}, nil
}

// Close lets go of the tree's files, and of its submodules.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	for _, mounted := range t.mounts {
		_ = mounted.Close()
	}
	t.store.done()
	return nil
}

// Commit returns the id of the commit that the tree shows.
func (t *Tree) Commit() string { return t.commit }

// ID returns git's own id of a file or folder. Two equal ids mean equal content, names and modes; so a
// caller can tell what a commit left alone without reading it.
func (t *Tree) ID(name string) (string, error) {
	n, err := t.lookup("id", name, true)
	if err != nil {
		return "", err
	}
	return n.id.String(), nil
}

func (t *Tree) top() node {
	return node{name: ".", mode: filemode.Dir, id: t.root, owner: t, path: "."}
}

// lookup finds what a path names. Symbolic links on the way are followed, and so is the last part
// when follow is set. Links are resolved part by part: `x/../y` means y beside what x points to.
func (t *Tree) lookup(op, name string, follow bool) (node, error) {
	fail := func(err error) (node, error) {
		return node{}, &fs.PathError{Op: op, Path: name, Err: err}
	}
	if !fs.ValidPath(name) {
		return fail(fs.ErrInvalid)
	}
	stack := []node{t.top()}
	parts := strings.Split(name, "/")
	for links := 0; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		switch part {
		case ".", "":
			continue
		case "..":
			if len(stack) == 1 {
				return fail(ErrOutside)
			}
			stack = stack[:len(stack)-1]
			continue
		}
		n, err := stack[len(stack)-1].child(part)
		if err != nil {
			return fail(err)
		}
		if n.mode != filemode.Symlink || len(parts) == 0 && !follow {
			stack = append(stack, n)
			continue
		}
		if links++; links > maxLinks {
			return fail(errors.New("too many symbolic links"))
		}
		target, err := n.target()
		if err != nil {
			return fail(err)
		}
		if path.IsAbs(target) {
			return fail(ErrOutside)
		}
		parts = append(strings.Split(target, "/"), parts...)
	}
	return stack[len(stack)-1], nil
}

func (n node) isDir() bool { return n.mode == filemode.Dir || n.mode == filemode.Submodule }

// child returns the entry of a folder.
func (n node) child(name string) (node, error) {
	children, err := n.children()
	if err != nil {
		return node{}, err
	}
	i, found := slices.BinarySearchFunc(children, name, func(c node, name string) int { return strings.Compare(c.name, name) })
	if !found {
		return node{}, fs.ErrNotExist
	}
	return children[i], nil
}

// children returns the entries of a folder, sorted by name.
func (n node) children() ([]node, error) {
	switch n.mode {
	case filemode.Dir:
		return n.owner.folder(n.id, n.path)
	case filemode.Submodule:
		mounted, err := n.owner.submodule(n)
		if err != nil {
			return nil, err
		}
		return mounted.top().children()
	}
	return nil, errors.New("not a folder")
}

// target returns where a symbolic link points to.
func (n node) target() (string, error) {
	size, err := n.owner.store.size(n.id)
	if err != nil {
		return "", err
	}
	if size == 0 || size > maxLink {
		return "", fmt.Errorf("symbolic link has a target of %d bytes", size)
	}
	content, err := n.content()
	return string(content), err
}

// content returns a file's content.
func (n node) content() (content []byte, err error) {
	err = n.pour(func(size int64, from io.Reader) error {
		content = make([]byte, size)
		_, err := io.ReadFull(from, content)
		return err
	})
	return content, err
}

// pour hands a file's content on.
func (n node) pour(take func(size int64, content io.Reader) error) error {
	if n.isDir() {
		return errors.New("is a folder")
	}
	return n.owner.store.pour(n.id, func(size int64, content io.Reader) error {
		if size > n.owner.maxFile {
			return fault.New(fault.Stalled, ReasonTooLarge, "file has %d MiB, which is more than the limit of %d MiB", size>>20, n.owner.maxFile>>20)
		}
		return take(size, content)
	})
}

// folder returns the entries of a tree object at a path, from memory when it was read before. Equal
// folders are one object, so what is kept has no path.
func (t *Tree) folder(id plumbing.Hash, at string) ([]node, error) {
	t.mu.Lock()
	kept, found := t.folders[id]
	t.mu.Unlock()
	if !found {
		var err error
		if kept, err = t.readFolder(id); err != nil {
			return nil, err
		}
		t.mu.Lock()
		if len(t.folders) >= maxFolders {
			clear(t.folders)
		}
		t.folders[id] = kept
		t.mu.Unlock()
	}
	children := slices.Clone(kept)
	for i := range children {
		children[i].path = path.Join(at, children[i].name)
	}
	return children, nil
}

func (t *Tree) readFolder(id plumbing.Hash) ([]node, error) {
	entries, err := t.store.folder(id)
	if err != nil {
		return nil, err
	}
	children := make([]node, 0, len(entries))
	for _, entry := range entries {
		if entry.Name == "." || strings.Contains(entry.Name, "/") || !fs.ValidPath(entry.Name) {
			return nil, fmt.Errorf("folder has an entry with the forbidden name %q", entry.Name)
		}
		children = append(children, node{name: entry.Name, mode: entry.Mode, id: entry.Hash, owner: t})
	}
	// Git sorts folders as if they ended with a slash.
	slices.SortFunc(children, func(a, b node) int { return strings.Compare(a.name, b.name) })
	return children, nil
}

// submodule returns the tree that belongs at a submodule's path, fetched once.
func (t *Tree) submodule(n node) (*Tree, error) {
	t.mu.Lock()
	mounted := t.mounts[n.path]
	t.mu.Unlock()
	if mounted != nil {
		return mounted, nil
	}
	url, err := t.submoduleURL(n.path)
	if err != nil {
		return nil, err
	}
	mounted, err = t.mount(url, n.id.String())
	if err != nil {
		return nil, fmt.Errorf("fetch submodule %s: %w", n.path, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.mounts[n.path]; other != nil || t.closed {
		_ = mounted.Close()
		if t.closed {
			return nil, fs.ErrClosed
		}
		return other, nil
	}
	t.mounts[n.path] = mounted
	return mounted, nil
}

func (t *Tree) submoduleURL(at string) (string, error) {
	missing := func(why string) error {
		return fault.New(fault.Stalled, ReasonSubmodule, "submodule %s: %s", at, why)
	}
	file, err := t.top().child(modules)
	if err != nil {
		return "", missing("the repository has no " + modules)
	}
	content, err := file.content()
	if err != nil {
		return "", missing(modules + " cannot be read")
	}
	parsed := config.NewModules()
	if err := parsed.Unmarshal(content); err != nil {
		return "", missing(modules + " does not parse")
	}
	for _, module := range parsed.Submodules {
		if path.Clean(module.Path) == at && module.URL != "" {
			return module.URL, nil
		}
	}
	return "", missing(modules + " has no url for it")
}
