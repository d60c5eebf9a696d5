package stream

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

// A Writer gives the text that Encode gives, in the same order, whatever is large.
func TestWriterIsEncode(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	noise := make([]byte, 3<<19)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	packed, err := content.Encode("a.bin", noise, true)
	if err != nil {
		t.Fatal(err)
	}
	var objects []any
	for i := range 12 {
		b := bundle()
		b.Name = strings.Repeat("b", i+1)
		if i%4 == 3 {
			b.Spec.Resources = append(b.Spec.Resources, packed, fleet.BundleResource{Name: "b", Content: "content: H4sI\nlast: H4sI\n"}, packed)
			b.Annotations = map[string]string{"content": "H4sI"}
		}
		objects = append(objects, b)
	}
	w := NewWriter()
	if err := w.Add(objects...); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := w.Copy(&got); err != nil {
		t.Fatal(err)
	}
	want, err := Encode(objects...)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes differ from the %d of Encode", got.Len(), len(want))
	}
	if len(want) < inMemory {
		t.Fatal("the text fits into memory")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What cannot be written fails as a whole.
func TestWriterFails(t *testing.T) {
	w := NewWriter()
	if err := w.Add(bundle(), func() {}, bundle()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := w.Copy(&out); err == nil || out.Len() != 0 {
		t.Errorf("error %v with %d bytes written", err, out.Len())
	}
	if err := w.Close(); err == nil {
		t.Error("closing hides the error")
	}
	full := errors.New("full")
	w = NewWriter()
	if err := w.Add(bundle()); err != nil {
		t.Fatal(err)
	}
	if err := w.Copy(failing{full}); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
