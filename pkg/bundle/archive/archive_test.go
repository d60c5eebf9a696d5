package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

var small = Limits{Packed: 1 << 20, File: 1000, Total: 3000, Entries: 10}

// pack writes entries as they are given, sizes from their bodies.
func pack(t testing.TB, entries ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	for _, header := range entries {
		if err := packed.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(packed, zeros{}, header.Size); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(packed.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func regular(name string, size int64) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}
}

// padded is an empty file with a large header.
func padded(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, PAXRecords: map[string]string{"TEST.x": strings.Repeat("x", 900_000)}}
}

func TestUnpack(t *testing.T) {
	data := pack(t,
		regular("web/templates/b.yaml", 3), regular("./web/Chart.yaml", 5), regular("web//x/./y", 0),
		tar.Header{Typeflag: tar.TypeDir, Name: "web/empty/"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "web/link", Linkname: "/etc/passwd"},
		tar.Header{Typeflag: tar.TypeLink, Name: "web/hard", Linkname: "../../etc/passwd"},
		tar.Header{Typeflag: tar.TypeChar, Name: "web/device"},
	)
	files, err := Unpack(data, small)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, file := range files {
		got[file.Name] = len(file.Data)
	}
	want := map[string]int{"web/Chart.yaml": 5, "web/templates/b.yaml": 3, "web/x/y": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestUnpackRefuses(t *testing.T) {
	many := make([]tar.Header, 11)
	for i := range many {
		many[i] = regular("web/"+string(rune('a'+i)), 1)
	}
	whole := pack(t, regular("web/a", 900))
	for name, test := range map[string]struct {
		data   []byte
		limits Limits
		want   string
	}{
		"parent":          {pack(t, regular("../a", 1)), small, "leads out"},
		"hidden parent":   {pack(t, regular("web/../../a", 1)), small, "leads out"},
		"absolute":        {pack(t, regular("/etc/passwd", 1)), small, "leads out"},
		"backslashes":     {pack(t, regular(`..\..\a`, 1)), small, "leads out"},
		"drive":           {pack(t, regular(`C:\a`, 1)), small, "leads out"},
		"the root":        {pack(t, regular(".", 1)), small, "leads out"},
		"large file":      {pack(t, regular("web/a", 1001)), small, "web/a has"},
		"large total":     {pack(t, regular("a", 999), regular("b", 999), regular("c", 999), regular("d", 999)), small, "more than the limit"},
		"many entries":    {pack(t, many...), small, "10 entries"},
		"large archive":   {whole, Limits{Packed: 10}, "more than the limit"},
		"twice":           {pack(t, regular("web/a", 1), regular("web//a", 2)), small, "twice"},
		"nothing":         {pack(t), small, "no files"},
		"no archive":      {[]byte("hello"), small, "not a gzipped archive"},
		"empty":           {nil, small, "not a gzipped archive"},
		"cut":             {whole[:len(whole)/2], small, "damaged"},
		"bomb":            {pack(t, regular("a", 22<<20), regular("b", 22<<20), regular("c", 22<<20)), DefaultLimits, "64 MiB"},
		"bomb in headers": {pack(t, padded("a"), padded("b"), padded("c")), small, "more than the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			files, err := Unpack(test.data, test.limits)
			if files != nil || fault.ClassOf(err) != fault.Stalled || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v, want a stalled error that says %q", files, err, test.want)
			}
		})
	}
}

// inCharts is an archive that holds others in its charts folder.
func inCharts(t testing.TB, archives ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	for i, data := range archives {
		header := regular(fmt.Sprintf("web/charts/c%d.tgz", i), int64(len(data)))
		if err := packed.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := packed.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(packed.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What archives in an archive unpack to counts too, at any depth.
func TestCheck(t *testing.T) {
	leaf := pack(t, regular("c/Chart.yaml", 20<<20), regular("c/a", 5<<20))
	deep := leaf
	for range maxNested + 1 {
		deep = inCharts(t, deep)
	}
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"one":         {inCharts(t, leaf), ""},
		"two":         {inCharts(t, leaf, leaf), ""},
		"three":       {inCharts(t, leaf, leaf, leaf), "64 MiB"},
		"in another":  {inCharts(t, leaf, inCharts(t, leaf, leaf)), "64 MiB"},
		"too deep":    {deep, "deep"},
		"not archive": {inCharts(t, []byte("hello")), "not a gzipped archive"},
		"bomb":        {inCharts(t, pack(t, regular("a", 25<<20), regular("b", 25<<20), regular("c", 25<<20))), "c0.tgz"},
	} {
		err := Check(test.data, DefaultLimits)
		if (test.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), test.want) || fault.ClassOf(err) != fault.Stalled) {
			t.Errorf("%s: got %v, want a stalled error that says %q", name, err, test.want)
		}
	}
}

// What comes out of any archive is within the limits and stays inside.
func FuzzUnpack(f *testing.F) {
	f.Add(pack(f, regular("web/Chart.yaml", 5)))
	f.Add(pack(f, regular("../a", 1), tar.Header{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		// The fuzzer changes more inside an archive than around it.
		var zipped bytes.Buffer
		writer := gzip.NewWriter(&zipped)
		if _, err := writer.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		for _, packed := range [][]byte{data, zipped.Bytes()} {
			if err := Check(packed, small); err != nil && fault.ClassOf(err) != fault.Stalled {
				t.Errorf("error %v of a check is not stalled", err)
			}
			files, err := Unpack(packed, small)
			if err != nil {
				if fault.ClassOf(err) != fault.Stalled {
					t.Errorf("error %v is not stalled", err)
				}
				continue
			}
			var total int
			for _, file := range files {
				total += len(file.Data)
				if file.Name != path.Clean(file.Name) || strings.HasPrefix(file.Name, "../") || path.IsAbs(file.Name) || len(file.Data) > 1000 {
					t.Errorf("file %q of %d bytes", file.Name, len(file.Data))
				}
			}
			if total > 3000 || len(files) > 10 {
				t.Errorf("%d files of %d bytes", len(files), total)
			}
		}
	})
}
