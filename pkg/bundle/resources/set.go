package resources

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/archive"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ReasonTooLarge is the reason of errors about the limits of a bundle.
const ReasonTooLarge = "TooLarge"

const (
	// compressFrom is the size of a Bundle's JSON from which all its files are stored compressed.
	compressFrom = tree.LargeFile
	// maxTotal bounds the files of one bundle, in bytes, and maxFiles their number.
	maxTotal = 128 << 20
	maxFiles = 20_000
)

// chartFiles are those that are read again to find a chart's dependencies.
var chartFiles = []string{"Chart.yaml", "Chart.lock", "requirements.yaml"}

// Set is the files of one bundle; their names are relative to the bundle.
type Set struct {
	// dir is the bundle's folder, for messages.
	dir   string
	files []archive.File
	// packed are the large files among them, by name: what they hold is here only.
	packed map[string]fleet.BundleResource
	sizes  map[string]int
	total  int64
}

// New returns the empty set of the bundle in a folder.
func New(dir string) *Set {
	return &Set{dir: dir, packed: map[string]fleet.BundleResource{}, sizes: map[string]int{}}
}

// Put adds a file within the limits. The content of a large one is not kept as it is: with such a file all are
// stored compressed, so it is compressed now, before the next one is read.
func (s *Set) Put(name string, data []byte) error {
	if len(data) > tree.MaxFile {
		return fault.New(fault.Stalled, ReasonTooLarge, "%s has %d MiB; a file in a bundle may have at most %d MiB", path.Join(s.dir, name), len(data)>>20, tree.MaxFile>>20)
	}
	if len(data) < compressFrom || isChartFile(name) {
		return s.note(name, data, int64(len(data)))
	}
	return s.PutLarge(name, int64(len(data)), bytes.NewReader(data))
}

// PutLarge adds a file of at least tree.LargeFile bytes while it is read.
func (s *Set) PutLarge(name string, size int64, from io.Reader) error {
	if isChartFile(name) {
		data, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		return s.note(name, data, int64(len(data)))
	}
	resource, size, err := content.EncodeFrom(name, size, from)
	if err != nil {
		return err
	}
	s.packed[name] = resource
	return s.note(name, nil, size)
}

// note counts a file.
func (s *Set) note(name string, data []byte, size int64) error {
	if len(s.files) >= maxFiles {
		return fault.New(fault.Stalled, ReasonTooLarge, "%s has more than %d files", s.dir, maxFiles)
	}
	s.sizes[name] = int(size)
	s.files = append(s.files, archive.File{Name: name, Data: data})
	if s.total += size; s.total > maxTotal {
		return fault.New(fault.Stalled, ReasonTooLarge, "the files of %s have more than %d MiB together; the largest are %s", s.dir, maxTotal>>20, s.largest(3))
	}
	return nil
}

// isChartFile says that a file is read again to find a chart's dependencies.
func isChartFile(name string) bool { return slices.Contains(chartFiles, path.Base(name)) }

func (s *Set) largest(n int) string {
	bySize := slices.SortedFunc(slices.Values(s.files), func(x, y archive.File) int {
		return cmp.Or(s.sizes[y.Name]-s.sizes[x.Name], strings.Compare(x.Name, y.Name))
	})
	var out []string
	for _, file := range bySize[:min(n, len(bySize))] {
		out = append(out, fmt.Sprintf("%s (%d MiB)", file.Name, s.sizes[file.Name]>>20))
	}
	return strings.Join(out, ", ")
}

// Files returns the files in the order they came. Of large ones, data is there only if they describe a chart.
func (s *Set) Files() []archive.File { return s.files }

// Find returns the content of a file, as Files has it, and whether there is one of this name.
func (s *Set) Find(name string) ([]byte, bool) {
	for _, file := range s.files {
		if file.Name == name {
			return file.Data, true
		}
	}
	return nil, false
}

// Has says that there is a file of this name.
func (s *Set) Has(name string) bool {
	_, found := s.Find(name)
	return found
}

// Encode puts the files into the Bundle, sorted by name: as text where that is possible and the Bundle stays
// small, else, or when it is asked for, all of them compressed. The set is used up then.
func (s *Set) Encode(object *fleet.Bundle, compress bool) error {
	slices.SortFunc(s.files, func(x, y archive.File) int { return strings.Compare(x.Name, y.Name) })
	compress = compress || s.total >= compressFrom
	if err := s.setResources(object, compress); err != nil || compress {
		return err
	}
	data, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode bundle %s: %w", object.Name, err)
	}
	if len(data) < compressFrom {
		return nil
	}
	return s.setResources(object, true)
}

func (s *Set) setResources(object *fleet.Bundle, compress bool) error {
	resources := make([]fleet.BundleResource, 0, len(s.files))
	for i, file := range s.files {
		resource, packed := s.packed[file.Name]
		if !packed {
			var err error
			if resource, err = content.Encode(file.Name, file.Data, compress); err != nil {
				return err
			}
		}
		resources = append(resources, resource)
		if compress {
			// Nobody needs it any more, and the rest of the bundle needs the memory.
			s.files[i].Data = nil
		}
	}
	object.Spec.Resources = resources
	return nil
}
