package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func link(target string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
}

func text(s string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(s), Mode: 0o644}
}

var files = fstest.MapFS{
	"a/b/file":      text("file"),
	"a/up":          link("../c"),
	"a/same":        link("b/file"),
	"c/other":       text("other"),
	"c/back":        link("../a/up/other"),
	"root":          link("."),
	"out":           link("../out"),
	"a/out":         link("../../etc"),
	"absolute":      link("/a"),
	"dangling":      link("nowhere"),
	"loop1":         link("loop2"),
	"loop2":         link("loop1"),
	".git/config":   text("x"),
	"a/.hidden/any": text("x"),
}

func TestReadFile(t *testing.T) {
	for name, want := range map[string]string{
		"a/b/file": "file", "a/same": "file", "a/up/other": "other", "c/back": "other", "root/a/b/file": "file",
		"root/root/c/other": "other", "a/../c/other": "other", "./a//b/file": "file",
	} {
		data, err := New(files).ReadFile(name)
		if err != nil || string(data) != want {
			t.Errorf("%s: got %q, %v, want %q", name, data, err, want)
		}
	}
	for name, wantReason := range map[string]string{
		"out": ReasonLeaves, "a/out/passwd": ReasonLeaves, "absolute/b/file": ReasonLeaves, "../x": ReasonLeaves, "/a": ReasonLeaves,
		"a/../../x": ReasonLeaves, "loop1": ReasonBrokenLink, "a": ReasonBrokenLink,
	} {
		_, err := New(files).ReadFile(name)
		if fault.ReasonOf(err) != wantReason || fault.ClassOf(err) != fault.Stalled {
			t.Errorf("%s: got %v, want a stalled %s", name, err, wantReason)
		}
	}
	for _, name := range []string{"nope", "dangling", "a/b/file/x", "nope/x"} {
		if _, err := New(files).ReadFile(name); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), name+":") {
			t.Errorf("%s: got %v, want that it does not exist", name, err)
		}
	}
}

func TestKinds(t *testing.T) {
	tree := New(files)
	for name, want := range map[string]string{"a": "dir", "a/up": "dir", "root": "dir", ".": "dir", "a/same": "file", "a/b/file": "file", "dangling": "", "out": "", "nope": "", "loop1": ""} {
		got := map[bool]string{true: "dir"}[tree.IsDir(name)] + map[bool]string{true: "file"}[tree.IsFile(name)]
		if got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestDirs(t *testing.T) {
	for pattern, want := range map[string][]string{
		".": {"."}, "": {"."}, "/": {"."}, "a": {"a"}, "/a/": {"a"}, "a/b/": {"a/b"}, "*": {"a", "c", "root"}, "a/*": {"a/.hidden", "a/b", "a/up"},
		"[ac]": {"a", "c"}, "?/b": {"a/b"}, "nope": nil, "a/b/file": nil, "a/b/file/*": nil, "a/b/file/x": nil, "x/*": nil,
	} {
		got, err := New(files).Dirs(pattern)
		if err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", pattern, diff)
		}
	}
	for _, pattern := range []string{"..", "../*", "a/../../b", "[", "a/[x"} {
		if _, err := New(files).Dirs(pattern); fault.ClassOf(err) != fault.Stalled {
			t.Errorf("%s: got %v, want a stalled error", pattern, err)
		}
	}
}

// away is a file system of which a part, such as a submodule, cannot be read.
type away struct {
	fstest.MapFS
	part string
}

func (a away) Lstat(name string) (fs.FileInfo, error) {
	if strings.HasPrefix(name, a.part) {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: errors.New("no answer")}
	}
	return a.MapFS.Lstat(name)
}

// A link that leads to where nothing can be read at the moment may be a folder: a pattern that skipped it would let
// the bundles in it count as gone.
func TestDirsThatCannotBeToldAreErrors(t *testing.T) {
	files := away{fstest.MapFS{
		"a/x.yaml": text("x"), "b": link("sub/app"), "c": link("gone"), "d": link("../out"), "e": link("e"), "f": link("a"),
	}, "sub"}
	for pattern, want := range map[string][]string{"*": nil, "?": nil, "b": nil, "[ac-f]": {"a", "f"}} {
		got, err := New(files).Dirs(pattern)
		if (err != nil) != (want == nil) || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", pattern, got, err, want)
		}
	}
}

// visitor keeps what it sees and wants all but some names.
type visitor struct {
	not  string
	seen []string
}

func (v *visitor) Enter(folder Folder) (bool, error) { return folder.Name != "skipped", nil }
func (v *visitor) Wants(_ Folder, name string, _ bool) bool {
	return !strings.Contains(v.not, "|"+name+"|")
}
func (v *visitor) File(name string, data []byte) error {
	v.seen = append(v.seen, name+"="+string(data))
	return nil
}

func (v *visitor) Large(name string, _ int64, content io.Reader) error {
	n, err := io.Copy(io.Discard, content)
	v.seen = append(v.seen, fmt.Sprintf("%s has %d bytes", name, n))
	return err
}

func TestWalk(t *testing.T) {
	tree := New(fstest.MapFS{
		"top/x": text("x"), "top/sub/y": text("y"), "top/skipped/z": text("z"), "top/link": link("../other"), "top/file": link("../other/w"),
		"top/broken": link("nope"), "top/unwanted": link("../../out"), "other/w": text("w"),
	})
	all := &visitor{not: "|broken|unwanted|"}
	if err := tree.Walk("top", all); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"file=w", "link/w=w", "sub/y=y", "x=x"}, all.seen); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	for start, wantReason := range map[string]string{"top": ReasonBrokenLink, "top/x": "InvalidPath", "../x": ReasonLeaves} {
		if err := tree.Walk(start, &visitor{not: "|unwanted|"}); fault.ReasonOf(err) != wantReason {
			t.Errorf("%s: got %v, want %s", start, err, wantReason)
		}
	}
}

// lying is a file system whose files have more than they say.
type lying struct{ fstest.MapFS }

type lyingFile struct{ fs.File }

type lyingInfo struct{ fs.FileInfo }

func (l lying) Open(name string) (fs.File, error) {
	file, err := l.MapFS.Open(name)
	return lyingFile{file}, err
}

func (l lyingFile) Stat() (fs.FileInfo, error) {
	info, err := l.File.Stat()
	return lyingInfo{info}, err
}

func (lyingInfo) Size() int64 { return 10 }

func TestReadFileIsBounded(t *testing.T) {
	large := fstest.MapFS{"x": text(strings.Repeat("x", MaxFile+1)), "y": text(strings.Repeat("x", 5000))}
	for name, fsys := range map[string]fs.FS{"honest": large, "lying": lying{large}} {
		if _, err := New(fsys).ReadFile("x"); fault.ReasonOf(err) != ReasonTooLarge {
			t.Errorf("%s: got %v, want %s", name, err, ReasonTooLarge)
		}
		if data, err := New(fsys).ReadFile("y"); err != nil || len(data) != 5000 {
			t.Errorf("%s: got %d bytes, %v, want 5000", name, len(data), err)
		}
	}
}

// No name and no links lead to a file that is not in the tree.
func FuzzResolve(f *testing.F) {
	f.Add("a/b", "../c", "..", "x/../../y")
	f.Add("l/l", "l", "/etc", "./.")
	f.Fuzz(func(t *testing.T, name, one, two, three string) {
		tree := New(fstest.MapFS{"a/b/c": text("c"), "l": link(one), "a/l": link(two), "a/b/l": link(three)})
		real, info, err := tree.Resolve(name)
		if err != nil {
			return
		}
		if !fs.ValidPath(real) || info.Mode()&fs.ModeSymlink != 0 {
			t.Errorf("%q leads to %q, a %s", name, real, info.Mode())
		}
	})
}
