package worktree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// FS is the tree of a commit as a file system with symbolic links. Submodules are empty folders.
type FS struct {
	repository *git.Repository
	root       *object.Tree
	trees      map[plumbing.Hash]*object.Tree
}

var (
	_ fs.ReadDirFS  = (*FS)(nil)
	_ fs.ReadLinkFS = (*FS)(nil)
)

func newFS(repository *git.Repository, root *object.Tree) *FS {
	return &FS{repository: repository, root: root, trees: map[plumbing.Hash]*object.Tree{}}
}

// Open opens a file or folder; it follows no links.
func (f *FS) Open(name string) (fs.File, error) {
	found, err := f.stat("open", name)
	if err != nil {
		return nil, err
	}
	if found.IsDir() {
		entries, err := f.ReadDir(name)
		return &folder{info: found, entries: entries}, err
	}
	blob, err := f.repository.BlobObject(found.hash)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	reader, err := blob.Reader()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &file{ReadCloser: reader, info: found}, nil
}

// ReadDir returns the sorted entries of a folder.
func (f *FS) ReadDir(name string) ([]fs.DirEntry, error) {
	tree, err := f.tree(name)
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	entries := make([]fs.DirEntry, 0, len(tree.Entries))
	for _, entry := range tree.Entries {
		found, err := f.info(entry)
		if err != nil {
			return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
		}
		entries = append(entries, fs.FileInfoToDirEntry(found))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// Lstat describes a file, folder or link.
func (f *FS) Lstat(name string) (fs.FileInfo, error) { return f.stat("lstat", name) }

// Stat is Lstat: whoever wants links followed does it, so that none leaves the tree.
func (f *FS) Stat(name string) (fs.FileInfo, error) { return f.stat("stat", name) }

// ReadLink returns where a link leads.
func (f *FS) ReadLink(name string) (string, error) {
	found, err := f.stat("readlink", name)
	if err != nil {
		return "", err
	}
	if found.mode&fs.ModeSymlink == 0 {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	opened, err := f.Open(name)
	if err != nil {
		return "", err
	}
	target, err := io.ReadAll(opened)
	return string(target), errors.Join(err, opened.Close())
}

func (f *FS) stat(op, name string) (info, error) {
	if !fs.ValidPath(name) {
		return info{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		return info{name: ".", mode: fs.ModeDir | 0o755}, nil
	}
	parent, err := f.tree(path.Dir(name))
	if err != nil {
		return info{}, &fs.PathError{Op: op, Path: name, Err: err}
	}
	for _, entry := range parent.Entries {
		if entry.Name != path.Base(name) {
			continue
		}
		found, err := f.info(entry)
		if err != nil {
			return info{}, &fs.PathError{Op: op, Path: name, Err: err}
		}
		return found, nil
	}
	return info{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

// tree returns a folder's tree; git's own objects are kept, since folders are asked for again and again.
func (f *FS) tree(name string) (*object.Tree, error) {
	current := f.root
	if name == "." {
		return current, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		next, err := f.child(current, part)
		if err != nil {
			return nil, err
		}
		current = next
	}
	return current, nil
}

func (f *FS) child(parent *object.Tree, name string) (*object.Tree, error) {
	for _, entry := range parent.Entries {
		if entry.Name != name {
			continue
		}
		if entry.Mode == filemode.Submodule {
			return &object.Tree{}, nil
		}
		if entry.Mode != filemode.Dir {
			return nil, fs.ErrNotExist
		}
		if known := f.trees[entry.Hash]; known != nil {
			return known, nil
		}
		tree, err := f.repository.TreeObject(entry.Hash)
		if err != nil {
			return nil, fmt.Errorf("read tree %s: %w", entry.Hash, err)
		}
		f.trees[entry.Hash] = tree
		return tree, nil
	}
	return nil, fs.ErrNotExist
}

func (f *FS) info(entry object.TreeEntry) (info, error) {
	found := info{name: entry.Name, hash: entry.Hash}
	switch entry.Mode {
	case filemode.Dir, filemode.Submodule:
		found.mode = fs.ModeDir | 0o755
		return found, nil
	case filemode.Symlink:
		found.mode = fs.ModeSymlink | 0o777
	case filemode.Executable:
		found.mode = 0o755
	default:
		found.mode = 0o644
	}
	size, err := f.repository.Storer.EncodedObjectSize(entry.Hash)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return found, fmt.Errorf("the object %s is not here (a shallow or partial clone?): %w", entry.Hash, err)
	}
	found.size = size
	return found, err
}

type info struct {
	name string
	mode fs.FileMode
	size int64
	hash plumbing.Hash
}

// Name implements fs.FileInfo.
func (i info) Name() string { return i.name }

// Size implements fs.FileInfo.
func (i info) Size() int64 { return i.size }

// Mode implements fs.FileInfo.
func (i info) Mode() fs.FileMode { return i.mode }

// ModTime implements fs.FileInfo; git keeps no times.
func (i info) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (i info) IsDir() bool { return i.mode.IsDir() }

// Sys implements fs.FileInfo.
func (i info) Sys() any { return nil }

type file struct {
	io.ReadCloser
	info info
}

// Stat implements fs.File.
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

type folder struct {
	info    info
	entries []fs.DirEntry
}

// Stat implements fs.File.
func (f *folder) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close implements fs.File.
func (f *folder) Close() error { return nil }

// Read implements fs.File.
func (f *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.info.name, Err: errors.New("is a folder")}
}

// ReadDir implements fs.ReadDirFile.
func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		rest := f.entries
		f.entries = nil
		return rest, nil
	}
	if len(f.entries) == 0 {
		return nil, io.EOF
	}
	first := f.entries[:min(n, len(f.entries))]
	f.entries = f.entries[len(first):]
	return first, nil
}
