package store

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/go-git/go-git/v5/plumbing/filemode"
)

var (
	_ fs.ReadDirFS  = (*Tree)(nil)
	_ fs.ReadFileFS = (*Tree)(nil)
	_ fs.StatFS     = (*Tree)(nil)
	_ fs.ReadLinkFS = (*Tree)(nil)
)

// Open opens a file or folder; symbolic links are followed.
func (t *Tree) Open(name string) (fs.File, error) {
	n, err := t.lookup("open", name, true)
	if err != nil {
		return nil, err
	}
	if n.isDir() {
		children, err := n.children()
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
		return &folder{node: n, path: name, left: children}, nil
	}
	content, err := n.content()
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &file{node: n, Reader: bytes.NewReader(content)}, nil
}

// ReadFile returns the content of a file; symbolic links are followed.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	n, err := t.lookup("read", name, true)
	if err != nil {
		return nil, err
	}
	content, err := n.content()
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return content, nil
}

// Pour hands on the content of a file as it is read; symbolic links are followed. take must not read other files.
func (t *Tree) Pour(name string, take func(size int64, content io.Reader) error) error {
	n, err := t.lookup("read", name, true)
	if err != nil {
		return err
	}
	return n.pour(take)
}

// ReadDir returns the entries of a folder, sorted by name. They describe symbolic links themselves.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := t.lookup("readdir", name, true)
	if err != nil {
		return nil, err
	}
	children, err := n.children()
	if err != nil {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: err}
	}
	return entries(children), nil
}

// Stat describes what a path leads to.
func (t *Tree) Stat(name string) (fs.FileInfo, error) {
	n, err := t.lookup("stat", name, true)
	if err != nil {
		return nil, err
	}
	return n.info(name)
}

// Lstat describes what a path names, be it a symbolic link.
func (t *Tree) Lstat(name string) (fs.FileInfo, error) {
	n, err := t.lookup("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return n.info(name)
}

// ReadLink returns the target of a symbolic link, as it was committed.
func (t *Tree) ReadLink(name string) (string, error) {
	n, err := t.lookup("readlink", name, false)
	if err != nil {
		return "", err
	}
	if n.mode != filemode.Symlink {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	target, err := n.target()
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return target, nil
}

func (n node) info(name string) (fs.FileInfo, error) {
	i := info{node: n}
	if n.isDir() {
		return i, nil
	}
	var err error
	if i.size, err = n.owner.store.size(n.id); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return i, nil
}

// info describes a file. Git keeps no times, so ModTime is zero.
type info struct {
	node
	size int64
}

// Name implements fs.FileInfo.
func (i info) Name() string { return i.name }

// Size implements fs.FileInfo; for folders it is zero.
func (i info) Size() int64 { return i.size }

// Mode implements fs.FileInfo.
func (i info) Mode() fs.FileMode { return i.fileMode() }

// ModTime implements fs.FileInfo.
func (i info) ModTime() time.Time { return time.Time{} }

// IsDir implements fs.FileInfo.
func (i info) IsDir() bool { return i.isDir() }

// Sys implements fs.FileInfo.
func (i info) Sys() any { return nil }

func (n node) fileMode() fs.FileMode {
	switch {
	case n.isDir():
		return fs.ModeDir | 0o755
	case n.mode == filemode.Symlink:
		return fs.ModeSymlink | 0o777
	case n.mode == filemode.Executable:
		return 0o755
	}
	return 0o644
}

// entry is a node as a folder lists it; its size is read when asked for.
type entry struct{ node }

// Name implements fs.DirEntry.
func (e entry) Name() string { return e.name }

// IsDir implements fs.DirEntry.
func (e entry) IsDir() bool { return e.isDir() }

// Type implements fs.DirEntry.
func (e entry) Type() fs.FileMode { return e.fileMode().Type() }

// Info implements fs.DirEntry.
func (e entry) Info() (fs.FileInfo, error) { return e.info(e.path) }

// String implements fmt.Stringer, for logs.
func (e entry) String() string { return fs.FormatDirEntry(e) }

func entries(nodes []node) []fs.DirEntry {
	out := make([]fs.DirEntry, len(nodes))
	for i, n := range nodes {
		out[i] = entry{n}
	}
	return out
}

// file is an open file; bytes.Reader adds Seek and ReadAt.
type file struct {
	node
	*bytes.Reader
}

// Stat implements fs.File.
func (f *file) Stat() (fs.FileInfo, error) { return info{node: f.node, size: f.Size()}, nil }

// Close implements fs.File.
func (f *file) Close() error { return nil }

// folder is an open folder.
type folder struct {
	node
	path string
	left []node
}

// Stat implements fs.File.
func (f *folder) Stat() (fs.FileInfo, error) { return info{node: f.node}, nil }

// Close implements fs.File.
func (f *folder) Close() error { return nil }

// Read implements fs.File; folders cannot be read.
func (f *folder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: f.path, Err: errors.New("is a folder")}
}

// ReadDir implements fs.ReadDirFile.
func (f *folder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(f.left)
	} else if len(f.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.left))
	out := entries(f.left[:n])
	f.left = f.left[n:]
	return out, nil
}
