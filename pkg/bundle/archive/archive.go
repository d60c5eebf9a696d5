package archive

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ReasonInvalid is the reason of every error of this package.
const ReasonInvalid = "InvalidArchive"

// File is one regular file of an archive.
type File struct {
	// Name is the slash path inside the archive.
	Name string
	Data []byte
}

// Limits bound what an archive may unpack to.
type Limits struct {
	// Packed, File and Total are in bytes.
	Packed, File, Total int64
	// Entries counts files, folders and everything else.
	Entries int
}

// DefaultLimits fit every chart that could be stored as a bundle.
var DefaultLimits = Limits{Packed: 32 << 20, File: 24 << 20, Total: 64 << 20, Entries: 10_000}

// Unpack returns the files of a gzipped tar archive, sorted by name. Errors are of class Stalled.
func Unpack(data []byte, limits Limits) ([]File, error) {
	if int64(len(data)) > limits.Packed {
		return nil, invalid("%d bytes are more than the limit of %d", len(data), limits.Packed)
	}
	// The first pass keeps nothing: an archive over a limit is known before memory is spent on it.
	if _, err := read(data, limits, func(string, io.Reader, int64) error { return nil }); err != nil {
		return nil, err
	}
	var files []File
	_, err := read(data, limits, func(name string, content io.Reader, size int64) error {
		file := File{Name: name, Data: make([]byte, size)}
		if _, err := io.ReadFull(content, file.Data); err != nil {
			return err
		}
		files = append(files, file)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(files); i++ {
		if files[i].Name == files[i-1].Name {
			return nil, invalid("%s is in the archive twice", files[i].Name)
		}
	}
	if len(files) == 0 {
		return nil, invalid("there are no files in it")
	}
	return files, nil
}

// maxNested is how deep charts may lie in one another's charts folders as archives.
const maxNested = 4

// Check returns an error for an archive that unpacks to more than the limits, with what the archives in its
// charts folder unpack to, and theirs: Helm reads a chart with all it holds. Nothing is kept in memory but the
// archives that lie in one another.
func Check(data []byte, limits Limits) error {
	left := limits.Total
	return check(data, limits, &left, 0)
}

func check(data []byte, limits Limits, left *int64, depth int) error {
	if depth > maxNested {
		return invalid("archives lie in one another more than %d deep", maxNested)
	}
	var here int64
	read, err := read(data, limits, func(name string, content io.Reader, size int64) error {
		if here += size; here > *left {
			return tooMuch(limits)
		}
		if !IsNested(name) {
			return nil
		}
		inner, err := io.ReadAll(io.LimitReader(content, size))
		if err != nil {
			return err
		}
		return check(inner, limits, left, depth+1)
	})
	if *left -= read; err == nil && *left < 0 {
		err = tooMuch(limits)
	}
	return err
}

func tooMuch(limits Limits) error {
	return invalid("with the archives in it, it unpacks to more than the limit of %d MiB", limits.Total>>20)
}

// IsNested says that a file of a chart is an archive that Helm reads as a chart too.
func IsNested(name string) bool {
	return path.Ext(name) == ".tgz" && path.Base(path.Dir(name)) == "charts"
}

// read goes through an archive and returns how many bytes it unpacked.
func read(data []byte, limits Limits, keep func(string, io.Reader, int64) error) (int64, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return 0, invalid("not a gzipped archive: %w", err)
	}
	// A tar's own headers may be padded without end; they count too.
	const headers = 1 << 20
	most := limits.Total + headers + int64(limits.Entries)*2048
	bounded := &io.LimitedReader{R: unzipped, N: most}
	err = entries(tar.NewReader(bounded), bounded, limits, keep)
	return most - bounded.N, err
}

func entries(archive *tar.Reader, bounded *io.LimitedReader, limits Limits, keep func(string, io.Reader, int64) error) error {
	var count int
	var total int64
	for {
		header, err := archive.Next()
		if bounded.N <= 0 {
			return invalid("it unpacks to more than the limit of %d MiB", limits.Total>>20)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return invalid("damaged: %w", err)
		}
		if count++; count > limits.Entries {
			return invalid("it has more than the limit of %d entries", limits.Entries)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		name, err := safe(header.Name)
		if err != nil {
			return err
		}
		if header.Size > limits.File {
			return invalid("%s has %d MiB, the limit is %d MiB", name, header.Size>>20, limits.File>>20)
		}
		if total += header.Size; total > limits.Total {
			return invalid("it unpacks to more than the limit of %d MiB", limits.Total>>20)
		}
		if err := keep(name, archive, header.Size); err != nil {
			var known *fault.Error
			if errors.As(err, &known) {
				return fmt.Errorf("%s: %w", name, err)
			}
			return invalid("read %s: %w", name, err)
		}
	}
}

// safe returns the clean name of an entry; one that leads out of the archive is an error.
func safe(name string) (string, error) {
	slashes := strings.ReplaceAll(name, `\`, "/")
	cleaned := path.Clean(slashes)
	drive := len(cleaned) > 1 && cleaned[1] == ':'
	if path.IsAbs(slashes) || drive || cleaned == "." || cleaned == ".." || strings.HasPrefix(cleaned, "../") || strings.ContainsRune(cleaned, 0) {
		return "", invalid("the entry %q leads out of the archive", name)
	}
	return cleaned, nil
}

func invalid(format string, args ...any) error {
	return fault.Wrap(fault.Stalled, ReasonInvalid, fmt.Errorf("chart archive: "+format, args...))
}
