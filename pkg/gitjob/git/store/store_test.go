package store

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// packed is an object as it goes into a pack made by hand.
type packed struct {
	kind    plumbing.ObjectType
	base    plumbing.Hash
	size    int64
	content []byte
}

func blob(content string) packed {
	return packed{kind: plumbing.BlobObject, size: int64(len(content)), content: []byte(content)}
}

func (p packed) id() plumbing.Hash { return plumbing.ComputeHash(p.kind, p.content) }

func tree(entries ...string) packed {
	content := []byte(strings.Join(entries, ""))
	return packed{kind: plumbing.TreeObject, size: int64(len(content)), content: content}
}

func treeEntry(mode, name string, id plumbing.Hash) string {
	return mode + " " + name + "\x00" + string(id[:])
}

func commitOf(root plumbing.Hash) packed {
	content := []byte("tree " + root.String() + "\nauthor A <a@example.com> 0 +0000\ncommitter A <a@example.com> 0 +0000\n\nmessage\n")
	return packed{kind: plumbing.CommitObject, size: int64(len(content)), content: content}
}

// packOf makes a pack; it says of the objects what they say of themselves.
func packOf(objects ...packed) []byte {
	var out bytes.Buffer
	out.WriteString("PACK")
	_ = binary.Write(&out, binary.BigEndian, [2]uint32{2, uint32(len(objects))})
	for _, o := range objects {
		out.Write(objectHeader(o.kind, o.size))
		if o.kind == plumbing.REFDeltaObject {
			out.Write(o.base[:])
		}
		deflater := zlib.NewWriter(&out)
		_, _ = deflater.Write(o.content)
		_ = deflater.Close()
	}
	sum := sha1.Sum(out.Bytes())
	out.Write(sum[:])
	return out.Bytes()
}

// delta makes a delta that copies the whole base and appends text.
func delta(base packed, suffix string) packed {
	content := binary.AppendUvarint(nil, uint64(base.size))
	content = binary.AppendUvarint(content, uint64(base.size)+uint64(len(suffix)))
	content = append(content, 0x80|0x10, byte(base.size), byte(len(suffix)))
	content = append(content, suffix...)
	return packed{kind: plumbing.REFDeltaObject, base: base.id(), size: int64(len(content)), content: content}
}

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := Create(filepath.Join(t.TempDir(), "mirror"), Limits{Pack: 1 << 20, Object: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Retire)
	return s
}

func add(s *Store, pack []byte) error {
	return s.Add(func(w io.Writer) error {
		_, err := w.Write(pack)
		return err
	})
}

func leftovers(t *testing.T, s *Store) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestAddRefusesBrokenAndHostilePacks(t *testing.T) {
	small := blob("small")
	good := packOf(small)
	flipped := bytes.Clone(good)
	flipped[len(flipped)-25] ^= 1
	lies := blob(strings.Repeat("x", 5000))
	lies.size = 5
	bomb := blob(strings.Repeat("\x00", 1<<17))
	hidden := bomb
	hidden.size = 100
	huge := delta(small, "x")
	huge.content = append(binary.AppendUvarint(binary.AppendUvarint(nil, 5), 1<<40), huge.content[2:]...)
	huge.size = int64(len(huge.content))
	count := bytes.Clone(good)
	binary.BigEndian.PutUint32(count[countOffset:], 1<<31)
	for name, test := range map[string]struct {
		pack   []byte
		reason string
	}{
		"no pack":             {[]byte("hello, this is not a pack, but long enough to be one"), ReasonBroken},
		"cut":                 {good[:len(good)-5], ReasonBroken},
		"flipped bit":         {flipped, ReasonBroken},
		"wrong count":         {count, ReasonBroken},
		"size that lies":      {packOf(lies), ReasonBroken},
		"bomb":                {packOf(bomb), ReasonTooLarge},
		"bomb that lies":      {packOf(hidden), ReasonBroken},
		"delta bomb":          {packOf(small, huge), ReasonTooLarge},
		"delta without base":  {packOf(delta(blob("elsewhere"), "x")), ReasonBroken},
		"larger than allowed": {make([]byte, 1<<20+1), ReasonTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			err := add(s, test.pack)
			if err == nil || fault.ReasonOf(err) != test.reason {
				t.Errorf("%s: %v, want %s", fault.ReasonOf(err), err, test.reason)
			}
			if files := leftovers(t, s); len(files) != 0 {
				t.Errorf("left behind: %v", files)
			}
			if err := add(s, good); err != nil || !s.Has(small.id().String()) {
				t.Errorf("a good pack afterwards: %v", err)
			}
		})
	}
}

func TestAddCompletesThinPacks(t *testing.T) {
	s := newStore(t)
	base := blob("base, ")
	if err := add(s, packOf(base)); err != nil {
		t.Fatal(err)
	}
	grown := blob("base, and more")
	root := tree(treeEntry("100644", "file", grown.id()))
	commit := commitOf(root.id())
	if err := add(s, packOf(commit, root, delta(base, "and more"))); err != nil {
		t.Fatal(err)
	}
	opened, err := s.Open(commit.id().String(), 1<<16, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if got, err := opened.ReadFile("file"); err != nil || string(got) != "base, and more" {
		t.Errorf("file is %q, %v", got, err)
	}
	if id, err := opened.ID("file"); err != nil || id != grown.id().String() {
		t.Errorf("id %s, %v", id, err)
	}
}

func TestHostileTrees(t *testing.T) {
	file := blob("x")
	for name, entry := range map[string]string{
		"parent": treeEntry("100644", "..", file.id()), "self": treeEntry("100644", ".", file.id()),
		"slash": treeEntry("100644", "a/b", file.id()), "absolute": treeEntry("100644", "/etc", file.id()),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			root := tree(entry)
			commit := commitOf(root.id())
			if err := add(s, packOf(file, root, commit)); err != nil {
				t.Fatal(err)
			}
			opened, err := s.Open(commit.id().String(), 1<<16, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			if entries, err := opened.ReadDir("."); err == nil {
				t.Errorf("listed %v", entries)
			}
		})
	}
}

func TestAnOpenTreeKeepsARetiredStore(t *testing.T) {
	s := newStore(t)
	file := blob("x")
	root := tree(treeEntry("100644", "file", file.id()))
	commit := commitOf(root.id())
	if err := add(s, packOf(file, root, commit)); err != nil {
		t.Fatal(err)
	}
	opened, err := s.Open(commit.id().String(), 1<<16, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Retire()
	if _, err := opened.ReadFile("file"); err != nil {
		t.Errorf("read after retiring: %v", err)
	}
	if _, err := s.Open(commit.id().String(), 1<<16, nil); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a retired store opens: %v", err)
	}
	for range 2 {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store is still on disk: %v", err)
	}
}

func TestOpenOfAnAbsentCommit(t *testing.T) {
	s := newStore(t)
	if err := add(s, packOf(blob("x"))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(strings.Repeat("ab", 20), 1, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := s.Open(blob("x").id().String(), 1, nil); err == nil {
		t.Error("a file was opened as a commit")
	}
}

func FuzzAdd(f *testing.F) {
	small := blob("small")
	root := tree(treeEntry("100644", "file", small.id()), treeEntry("40000", "dir", tree().id()), treeEntry("120000", "link", small.id()))
	f.Add(packOf(small, root, tree(), commitOf(root.id())))
	f.Add(packOf(small, delta(small, "more")))
	f.Fuzz(func(t *testing.T, pack []byte) {
		if len(pack) > checksumSize {
			// A right checksum lets the rest be tried.
			sum := sha1.Sum(pack[:len(pack)-checksumSize])
			pack = append(bytes.Clone(pack[:len(pack)-checksumSize]), sum[:]...)
		}
		s := newStore(t)
		if err := add(s, pack); err != nil {
			if files := leftovers(t, s); len(files) != 0 {
				t.Errorf("left behind: %v", files)
			}
			return
		}
		opened, err := s.Open(commitOf(root.id()).id().String(), 1<<16, nil)
		if err != nil {
			return
		}
		defer opened.Close()
		_ = fs.WalkDir(opened, ".", func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				_, _ = opened.ReadFile(path)
			}
			if !fs.ValidPath(path) {
				t.Errorf("path %q", path)
			}
			return nil
		})
	})
}
