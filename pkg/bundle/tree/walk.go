package tree

import (
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Folder is one folder of a walk.
type Folder struct {
	// Name is relative to where the walk began; "." is the start itself.
	Name string
	// Path is relative to the root of the tree.
	Path string
	// Entries are what is in the folder, sorted by name.
	Entries []fs.DirEntry

	real string
}

// Has says that the folder has an entry of that name which is no folder.
func (f Folder) Has(name string) bool {
	i, found := slices.BinarySearchFunc(f.Entries, name, func(entry fs.DirEntry, name string) int {
		return strings.Compare(entry.Name(), name)
	})
	return found && !f.Entries[i].IsDir()
}

// Visitor decides what a walk reads.
type Visitor interface {
	// Enter is asked before the entries of a folder are looked at; false leaves the folder out.
	Enter(folder Folder) (bool, error)
	// Wants is asked for every entry, name being relative to the start.
	Wants(folder Folder, name string, dir bool) bool
	// File is called with the content of each wanted file.
	File(name string, data []byte) error
	// Large is called for files of LargeFile bytes and more. The content must be read to its end; the size is
	// what it had when it was opened.
	Large(name string, size int64, content io.Reader) error
}

// Walk reads all files below a folder in lexical order of folders. A link to a folder is walked like one;
// links in circles are errors.
func (t *Tree) Walk(start string, visitor Visitor) error {
	real, info, err := t.Resolve(start)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fault.New(fault.Stalled, "InvalidPath", "%s is no folder", start)
	}
	return t.walk(Folder{Name: ".", Path: start, real: real}, nil, visitor)
}

func (t *Tree) walk(folder Folder, above []string, visitor Visitor) error {
	if slices.Contains(above, folder.real) {
		return fault.New(fault.Stalled, ReasonBrokenLink, "%s: links lead in circles", folder.Path)
	}
	entries, err := fs.ReadDir(t.fsys, folder.real)
	if err != nil {
		return unnamed(folder.Path, err)
	}
	folder.Entries = entries
	enter, err := visitor.Enter(folder)
	if err != nil || !enter {
		return err
	}
	above = append(slices.Clip(above), folder.real)
	for _, entry := range entries {
		if err := t.visit(folder, entry, above, visitor); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree) visit(folder Folder, entry fs.DirEntry, above []string, visitor Visitor) error {
	name, full := path.Join(folder.Name, entry.Name()), path.Join(folder.Path, entry.Name())
	if !visitor.Wants(folder, name, entry.IsDir()) {
		return nil
	}
	real, mode := path.Join(folder.real, entry.Name()), entry.Type()
	if mode&fs.ModeSymlink != 0 {
		target, info, err := t.Resolve(full)
		if errors.Is(err, fs.ErrNotExist) {
			return fault.New(fault.Stalled, ReasonBrokenLink, "the link %s leads to nothing", full)
		}
		if err != nil {
			return err
		}
		real, mode = target, info.Mode().Type()
		if mode.IsDir() && !visitor.Wants(folder, name, true) {
			return nil
		}
	}
	switch {
	case mode.IsDir():
		return t.walk(Folder{Name: name, Path: full, real: real}, above, visitor)
	case mode.IsRegular():
		return t.pour(full, real, func(size int64, content io.Reader) error {
			if size >= LargeFile {
				return visitor.Large(name, size, content)
			}
			data, err := readAll(size, content)
			if err != nil {
				return unnamed(full, err)
			}
			return visitor.File(name, data)
		})
	}
	return nil
}
