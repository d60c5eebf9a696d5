package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Reasons of the errors of this package, fit for conditions; all but the first are stalled.
const (
	ReasonBroken           = "PackBroken"
	ReasonTooLarge         = "RepositoryTooLarge"
	ReasonRevisionNotFound = "RevisionNotFound"
	ReasonSubmodule        = "SubmoduleNotFound"
)

// openPacks bounds how many files a store keeps open.
const openPacks = 4

// cacheBytes bounds how much of the objects read lately stays in memory, per store. Deltas are made
// against neighbours, so a little goes a long way.
const cacheBytes = 4 << 20

// streamFrom is the size of objects, in bytes, from which they are read as a stream: such a file is in memory
// once, where its reader has it.
const streamFrom = 1 << 20

// Limits bound what a repository may cost, in bytes.
type Limits struct {
	// Pack is for one fetch, as it is sent.
	Pack int64
	// Object is for one object, unpacked; indexing a pack holds one in memory.
	Object int64
}

// Store holds the objects of a repository in a folder of its own. It is safe for several goroutines.
type Store struct {
	dir    string
	limits Limits

	// mu guards the object storage, which is not made for concurrent reading.
	mu      sync.Mutex
	objects *filesystem.ObjectStorage
	packs   int
	bytes   int64
	first   int64

	users   int
	retired bool
}

// Create makes an empty store in a folder that does not exist yet.
func Create(dir string, limits Limits) (*Store, error) {
	s := &Store{dir: dir, limits: limits}
	if err := os.MkdirAll(s.packDir(), 0o700); err != nil {
		return nil, fmt.Errorf("make git mirror: %w", err)
	}
	s.reload()
	return s, nil
}

func (s *Store) packDir() string { return filepath.Join(s.dir, "objects", "pack") }

// reload forgets what was read of the packs, so that the next read sees a new one.
func (s *Store) reload() {
	if s.objects != nil {
		_ = s.objects.Close()
	}
	s.objects = filesystem.NewObjectStorageWithOptions(
		dotgit.New(osfs.New(s.dir)), cache.NewObjectLRU(cacheBytes), filesystem.Options{MaxOpenDescriptors: openPacks, LargeObjectThreshold: streamFrom})
}

// Has says whether a commit is there, complete.
func (s *Store) Has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.packs > 0 && s.objects.HasEncodedObject(plumbing.NewHash(id)) == nil
}

// Size returns the number of packs, their bytes on disk, and those of the first one.
func (s *Store) Size() (packs int, bytes, first int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.packs, s.bytes, s.first
}

// Add stores the pack that fetch writes. An error of fetch, or a pack that is broken or too large,
// leaves the store as it was.
func (s *Store) Add(fetch func(pack io.Writer) error) error {
	file, err := os.CreateTemp(s.dir, "incoming-")
	if err != nil {
		return fmt.Errorf("store pack: %w", err)
	}
	defer func() { _ = errors.Join(file.Close(), os.Remove(file.Name())) }()
	limited := &limitedWriter{w: file, left: s.limits.Pack}
	if err := fetch(limited); err != nil {
		return err
	}
	if limited.written == 0 {
		return nil
	}
	name, err := s.index(file)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("store pack: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.Rename(file.Name(), name+".pack"); err != nil {
		return fmt.Errorf("store pack: %w", err)
	}
	s.packs++
	s.bytes += info.Size()
	if s.first == 0 {
		s.first = info.Size()
	}
	s.reload()
	return nil
}

// index checks, completes and indexes a pack, and returns its name without extension.
func (s *Store) index(pack *os.File) (string, error) {
	bases, err := checkObjects(pack, s.limits.Object)
	if err != nil {
		return "", err
	}
	if err := complete(pack, bases, s.encoded); err != nil {
		return "", err
	}
	return writeIndex(pack, s.packDir())
}

// encoded returns an object of any kind, or plumbing.ErrObjectNotFound.
func (s *Store) encoded(id plumbing.Hash) (plumbing.EncodedObject, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects.EncodedObject(plumbing.AnyObject, id)
}

// limitedWriter refuses to write more than a pack may hold.
type limitedWriter struct {
	w             io.Writer
	left, written int64
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, fault.New(fault.Stalled, ReasonTooLarge,
			"the repository is larger than the limit of %d MiB for one fetch", (l.left+l.written)>>20)
	}
	n, err := l.w.Write(p)
	l.left -= int64(n)
	l.written += int64(n)
	return n, err
}

// use keeps the store's files until done is called; it is false once they are gone.
func (s *Store) use() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired {
		return false
	}
	s.users++
	return true
}

func (s *Store) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.removeUnused()
}

// Retire removes the store from disk, as soon as the last open tree is closed.
func (s *Store) Retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = true
	s.removeUnused()
}

func (s *Store) removeUnused() {
	if s.retired && s.users == 0 {
		_ = s.objects.Close()
		_ = os.RemoveAll(s.dir)
	}
}

// root returns the tree of a commit, or of the commit an annotated tag points to.
func (s *Store) root(id plumbing.Hash) (plumbing.Hash, error) {
	for range 4 {
		encoded, err := s.objects.EncodedObject(plumbing.AnyObject, id)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		switch encoded.Type() {
		case plumbing.CommitObject:
			commit := &object.Commit{}
			err := commit.Decode(encoded)
			return commit.TreeHash, err
		case plumbing.TagObject:
			tag := &object.Tag{}
			if err := tag.Decode(encoded); err != nil {
				return plumbing.ZeroHash, err
			}
			id = tag.Target
		default:
			return plumbing.ZeroHash, fmt.Errorf("object %s is a %s, not a commit", id, encoded.Type())
		}
	}
	return plumbing.ZeroHash, errors.New("tags point to tags")
}

// folder returns the entries of a tree object.
func (s *Store) folder(id plumbing.Hash) ([]object.TreeEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	encoded, err := s.objects.EncodedObject(plumbing.TreeObject, id)
	if err != nil {
		return nil, fmt.Errorf("read folder %s: %w", id, err)
	}
	tree := &object.Tree{}
	if err := tree.Decode(encoded); err != nil {
		return nil, fmt.Errorf("read folder %s: %w", id, err)
	}
	return tree.Entries, nil
}

// size returns the size of a file without reading it.
func (s *Store) size(id plumbing.Hash) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size, err := s.objects.EncodedObjectSize(id)
	if err != nil {
		return 0, fmt.Errorf("read size of file %s: %w", id, err)
	}
	return size, nil
}

// pour hands on the content of a file, a large one as it is read.
func (s *Store) pour(id plumbing.Hash, take func(size int64, content io.Reader) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	encoded, err := s.objects.EncodedObject(plumbing.BlobObject, id)
	if err != nil {
		return fmt.Errorf("read file %s: %w", id, err)
	}
	reader, err := encoded.Reader()
	if err != nil {
		return fmt.Errorf("read file %s: %w", id, err)
	}
	defer func() { _ = reader.Close() }()
	return take(encoded.Size(), reader)
}
