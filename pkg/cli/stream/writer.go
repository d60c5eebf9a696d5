package stream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

const (
	// inMemory is how much text is kept before a file takes the rest, in bytes.
	inMemory = 8 << 20
	// large is the size of a Bundle's files, in bytes, from which it is written alone.
	large = 1 << 20
)

// Writer writes objects as they come and keeps the text until all of them are there: what reads it must not
// take half an answer for a whole one. Small objects are written while the next ones are made; of large ones
// there is one in memory. It is for one goroutine.
type Writer struct {
	group errgroup.Group
	// last is closed when the text of the last object is kept.
	last chan struct{}
	text spool
}

// NewWriter returns an empty Writer. Close it.
func NewWriter() *Writer {
	w := &Writer{last: make(chan struct{})}
	close(w.last)
	w.group.SetLimit(runtime.GOMAXPROCS(0))
	return w
}

// Add writes objects, which must not be changed any more. Errors come now or with Copy.
func (w *Writer) Add(objects ...any) error {
	for _, object := range objects {
		if bundle, is := object.(*fleet.Bundle); is && IsLarge(bundle) {
			<-w.last
			if err := encodeLarge(&w.text, bundle); err != nil {
				return err
			}
			continue
		}
		before, done := w.last, make(chan struct{})
		w.last = done
		w.group.Go(func() error {
			defer close(done)
			text, err := encode(object)
			<-before
			if err == nil {
				_, err = w.text.Write(text)
			}
			return err
		})
	}
	return nil
}

// Copy writes the text of all objects.
func (w *Writer) Copy(to io.Writer) error {
	if err := w.group.Wait(); err != nil {
		return err
	}
	return w.text.copy(to)
}

// Close removes what was kept.
func (w *Writer) Close() error {
	return errors.Join(w.group.Wait(), w.text.remove())
}

// IsLarge says that of such Bundles no more than one should be in memory.
func IsLarge(bundle *fleet.Bundle) bool {
	size := 0
	for _, resource := range bundle.Spec.Resources {
		size += len(resource.Content)
	}
	return size >= large
}

// encodeLarge writes what encode does and makes no copy of compressed files: they are put where words that
// stand for them are in the text.
func encodeLarge(to io.Writer, bundle *fleet.Bundle) error {
	small := *bundle
	small.Spec.Resources = slices.Clone(bundle.Spec.Resources)
	// Compressed files start like this, and what a text starts with decides how it is quoted.
	word := "H4sI"
	for {
		for i, resource := range bundle.Spec.Resources {
			if resource.Encoding == content.EncodingGzip {
				small.Spec.Resources[i].Content = word
			}
		}
		text, err := encode(&small)
		if err != nil {
			return err
		}
		parts := bytes.Split(text, []byte("content: "+word+"\n"))
		if at := compressed(bundle); len(parts) == len(at)+1 {
			return join(to, parts, at)
		}
		word += "x" // the text had it somewhere else
	}
}

// compressed lists the contents of compressed files.
func compressed(bundle *fleet.Bundle) []string {
	var contents []string
	for _, resource := range bundle.Spec.Resources {
		if resource.Encoding == content.EncodingGzip {
			contents = append(contents, resource.Content)
		}
	}
	return contents
}

func join(to io.Writer, parts [][]byte, contents []string) error {
	if _, err := to.Write(parts[0]); err != nil {
		return err
	}
	for i, text := range contents {
		for _, piece := range []string{"content: ", text, "\n", string(parts[i+1])} {
			if _, err := io.WriteString(to, piece); err != nil {
				return err
			}
		}
	}
	return nil
}

// spool keeps text, much of it in a file.
type spool struct {
	memory bytes.Buffer
	file   *os.File
}

// Write implements io.Writer.
func (s *spool) Write(text []byte) (int, error) { return write(s, text, s.memory.Write) }

// WriteString implements io.StringWriter, so that a long text is not copied.
func (s *spool) WriteString(text string) (int, error) { return write(s, text, s.memory.WriteString) }

func write[T string | []byte](s *spool, text T, remember func(T) (int, error)) (int, error) {
	if s.file == nil && s.memory.Len()+len(text) <= inMemory {
		return remember(text)
	}
	if s.file == nil {
		file, err := os.CreateTemp("", "fleet-")
		if err != nil {
			return 0, fmt.Errorf("keep what is to be written: %w", err)
		}
		s.file = file
	}
	// In pieces: a string is copied before it can be written.
	const piece = 1 << 20
	written := 0
	for len(text) > 0 {
		n, err := s.file.Write([]byte(text[:min(piece, len(text))]))
		if written += n; err != nil {
			return written, fmt.Errorf("keep what is to be written: %w", err)
		}
		text = text[n:]
	}
	return written, nil
}

func (s *spool) copy(to io.Writer) error {
	if _, err := to.Write(s.memory.Bytes()); err != nil || s.file == nil {
		return err
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(to, s.file)
	return err
}

func (s *spool) remove() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
