package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const (
	// ReasonLeaves is the reason of the error for a path or link that leads out of the repository.
	ReasonLeaves = "LeavesRepository"
	// ReasonTooLarge is the reason of the error for a file or folder over a limit.
	ReasonTooLarge = "TooLarge"
	// ReasonBrokenLink is the reason of the error for a link to nothing, or in circles.
	ReasonBrokenLink = "BrokenLink"

	// MaxFile bounds one file, in bytes.
	MaxFile = 24 << 20

	// LargeFile is the size, in bytes, from which a walk hands files on without holding them.
	LargeFile = 1_000_000

	maxLinks = 40
)

// Tree is a sandboxed reader of a file tree. Names are slash paths relative to its root.
type Tree struct {
	fsys fs.FS
	// folders are those that were resolved, by their names: most names are asked for next to another one.
	folders map[string]resolved
}

// resolved is where a name leads.
type resolved struct {
	real string
	info fs.FileInfo
}

// pourFS is a file system that does not hold a whole file to read it.
type pourFS interface {
	Pour(name string, take func(size int64, content io.Reader) error) error
}

// New returns a reader of fsys. Where fsys is no fs.ReadLinkFS it is taken to have no links.
func New(fsys fs.FS) *Tree {
	return &Tree{fsys: fsys, folders: map[string]resolved{}}
}

// Clean returns the name in canonical form, or an error of class Stalled if it leads out of the root.
func Clean(name string) (string, error) {
	cleaned := path.Clean(name)
	if cleaned == ".." || strings.HasPrefix(cleaned, "../") || path.IsAbs(cleaned) {
		return "", fault.New(fault.Stalled, ReasonLeaves, "%s leads out of the repository", name)
	}
	return cleaned, nil
}

// Resolve follows all links on the way to name and returns where it leads, with its information.
// A name that does not exist gives fs.ErrNotExist.
func (t *Tree) Resolve(name string) (string, fs.FileInfo, error) {
	cleaned, err := Clean(name)
	if err != nil {
		return "", nil, err
	}
	if known, ok := t.folders[cleaned]; ok {
		return known.real, known.info, nil
	}
	start, rest := resolved{real: "."}, cleaned
	if dir, base := path.Split(cleaned); dir != "" {
		// What is wrong with the folder is said of the whole name, below.
		if real, info, err := t.Resolve(dir); err == nil && info.IsDir() {
			start, rest = resolved{real, info}, base
		}
	}
	real, info, err := t.resolve(name, start, rest)
	if err == nil && info.IsDir() {
		t.folders[cleaned] = resolved{real, info}
	}
	return real, info, err
}

// resolve goes on from a folder that is resolved already.
func (t *Tree) resolve(name string, start resolved, rest string) (string, fs.FileInfo, error) {
	done, info, links := start.real, start.info, 0
	var err error
	if info == nil {
		info, err = fs.Lstat(t.fsys, ".")
	}
	for err == nil && rest != "." && rest != "" {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		next := path.Join(done, part)
		if info, err = fs.Lstat(t.fsys, next); err != nil {
			break
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			if done = next; rest != "" && !info.IsDir() {
				err = fs.ErrNotExist
			}
			continue
		}
		if links++; links > maxLinks {
			return "", nil, fault.New(fault.Stalled, ReasonBrokenLink, "%s: links lead in circles", name)
		}
		if rest, err = t.follow(name, next, rest); err == nil {
			done = "."
			info, err = fs.Lstat(t.fsys, ".")
		}
	}
	if err != nil {
		return "", nil, unnamed(name, err)
	}
	return done, info, nil
}

// follow returns the path, from the root, that a link and what comes after it stand for.
func (t *Tree) follow(name, link, rest string) (string, error) {
	target, err := fs.ReadLink(t.fsys, link)
	if err != nil {
		return "", err
	}
	leaves := fault.New(fault.Stalled, ReasonLeaves, "%s: the link %s leads out of the repository, to %s", name, link, target)
	if path.IsAbs(target) {
		return "", leaves
	}
	joined := path.Join(path.Dir(link), target)
	if joined == ".." || strings.HasPrefix(joined, "../") {
		return "", leaves
	}
	return path.Join(joined, rest), nil
}

// unnamed replaces the path in a file system's error by the one that was asked for.
func unnamed(name string, err error) error {
	if err == nil {
		return nil
	}
	var named *fault.Error
	if errors.As(err, &named) {
		return err
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// IsDir says that name is a folder, or a link to one.
func (t *Tree) IsDir(name string) bool {
	_, info, err := t.Resolve(name)
	return err == nil && info.IsDir()
}

// IsFile says that name is a regular file, or a link to one.
func (t *Tree) IsFile(name string) bool {
	_, info, err := t.Resolve(name)
	return err == nil && info.Mode().IsRegular()
}

// ReadFile returns the content of a file of at most MaxFile bytes.
func (t *Tree) ReadFile(name string) ([]byte, error) {
	real, info, err := t.Resolve(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fault.New(fault.Stalled, ReasonBrokenLink, "%s is no regular file", name)
	}
	return t.read(name, real)
}

func (t *Tree) read(name, real string) (data []byte, err error) {
	err = t.pour(name, real, func(size int64, content io.Reader) error {
		data, err = readAll(size, content)
		return err
	})
	return data, err
}

// pour hands on a file of at most MaxFile bytes, as it is read.
func (t *Tree) pour(name, real string, take func(size int64, content io.Reader) error) error {
	bounded := func(size int64, content io.Reader) error {
		limited := &io.LimitedReader{R: content, N: MaxFile + 1}
		if size > MaxFile {
			return tooLarge(name, size)
		}
		if err := take(size, limited); err != nil {
			return err
		}
		if limited.N <= 0 {
			return tooLarge(name, MaxFile+1)
		}
		return nil
	}
	if files, ok := t.fsys.(pourFS); ok {
		return unnamed(name, files.Pour(real, bounded))
	}
	file, err := t.fsys.Open(real)
	if err != nil {
		return unnamed(name, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return unnamed(name, err)
	}
	return unnamed(name, bounded(info.Size(), file))
}

// readAll reads to the end; the size is a guess that is mostly right.
func readAll(size int64, content io.Reader) ([]byte, error) {
	data := make([]byte, 0, size+1)
	for {
		n, err := content.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			data = slices.Grow(data, len(data)+512)
		}
	}
}

func tooLarge(name string, size int64) error {
	return fault.New(fault.Stalled, ReasonTooLarge, "%s has %d MiB; a file in a bundle may have at most %d MiB",
		name, (size+1<<20-1)>>20, MaxFile>>20)
}

// ReadDir returns the sorted entries of a folder.
func (t *Tree) ReadDir(name string) ([]fs.DirEntry, error) {
	real, _, err := t.Resolve(name)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(t.fsys, real)
	if err != nil {
		return nil, unnamed(name, err)
	}
	return entries, nil
}

// Dirs returns the folders a pattern of path.Match stands for, sorted; "*" does not cross a slash. The
// folder .git is never one.
func (t *Tree) Dirs(pattern string) ([]string, error) {
	cleaned, err := Clean(strings.TrimLeft(pattern, "/"))
	if err != nil {
		return nil, err
	}
	if _, err := path.Match(cleaned, ""); err != nil {
		return nil, fault.New(fault.Stalled, "InvalidPath", "%s is no valid pattern: %v", pattern, err)
	}
	found := []string{"."}
	for part := range strings.SplitSeq(cleaned, "/") {
		if part == "." {
			continue
		}
		var next []string
		for _, dir := range found {
			matched, err := t.match(dir, part)
			if err != nil {
				return nil, err
			}
			next = append(next, matched...)
		}
		found = next
	}
	return found, nil
}

func (t *Tree) match(dir, part string) ([]string, error) {
	if !strings.ContainsAny(part, `*?[\`) {
		name := path.Join(dir, part)
		_, info, err := t.Resolve(name)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && !info.IsDir()) {
			return nil, nil
		}
		return []string{name}, err
	}
	entries, err := t.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		matched, err := path.Match(part, entry.Name())
		if err != nil {
			return nil, fault.New(fault.Stalled, "InvalidPath", "%s is no valid pattern: %v", part, err)
		}
		if !matched || entry.Name() == ".git" {
			continue
		}
		isDir := entry.IsDir()
		if entry.Type()&fs.ModeSymlink != 0 {
			if isDir, err = t.leadsToDir(name); err != nil {
				return nil, err
			}
		}
		if isDir {
			out = append(out, name)
		}
	}
	return out, nil
}

// leadsToDir says that a link leads to a folder. That it cannot be told, as when a submodule cannot be fetched, is an
// error: whoever takes that for no folder removes what is in it.
func (t *Tree) leadsToDir(link string) (bool, error) {
	_, info, err := t.Resolve(link)
	reason := fault.ReasonOf(err)
	if errors.Is(err, fs.ErrNotExist) || reason == ReasonLeaves || reason == ReasonBrokenLink {
		return false, nil
	}
	return err == nil && info.IsDir(), err
}
