package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// noise returns a file of so many bytes that do not compress.
func noise(t *testing.T, random *rand.Rand, name string, size int) fleet.BundleResource {
	t.Helper()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	resource, err := Encode(name, data, true)
	if err != nil {
		t.Fatal(err)
	}
	return resource
}

func split(t *testing.T, manifest Manifest) (Stored, Objects) {
	t.Helper()
	stored, err := manifest.Store()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := stored.Objects()
	if err != nil {
		t.Fatal(err)
	}
	return stored, objects
}

// byName gets chunks, and counts how often.
func byName(objects Objects, asked *int) func(string) (*fleet.Content, error) {
	return func(name string) (*fleet.Content, error) {
		*asked++
		for _, chunk := range objects.Chunks {
			if chunk.Name == name {
				return chunk, nil
			}
		}
		return nil, fmt.Errorf("no chunk %s", name)
	}
}

// wire is the size of an object in an API server's answer, with what a server adds to it.
func wire(t *testing.T, object *fleet.Content) int {
	t.Helper()
	sent := object.DeepCopy()
	sent.APIVersion, sent.Kind = fleet.GroupVersion.String(), "Content"
	sent.UID, sent.ResourceVersion, sent.Generation = "01234567-0123-0123-0123-0123456789ab", "18446744073709551615", 1
	sent.CreationTimestamp = metav1.Now()
	metav1.SetMetaDataAnnotation(&sent.ObjectMeta, fleet.NeededAnnotation, "2026-01-01T00:00:00Z")
	sent.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "fleet-controller", Operation: "Update", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:` + strings.Repeat("x", 1000) + `":{}}`),
	}}
	data, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	return len(data)
}

// Manifests of every size come back as they were, from objects that an API server takes, and small ones
// are stored as upstream stores them.
func TestObjectsRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []int{0, 1, maxPacked - 2000, maxPacked, maxPacked + 1, 2 * maxPacked, 4 << 20}
	for range 8 {
		sizes = append(sizes, int(random.ExpFloat64()*float64(1<<19)))
	}
	for _, size := range sizes {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			manifest := Manifest{Resources: []fleet.BundleResource{{Name: "a.yaml", Content: "a: <b> & \u2028 c\n"}, noise(t, random, "chart.tgz", size)}}
			stored, objects := split(t, manifest)
			for _, object := range append(objects.Chunks, objects.Head) {
				if size := wire(t, object); size > MaxObject {
					t.Errorf("%s has %d bytes, want at most %d", object.Name, size, MaxObject)
				}
			}
			if one := len(objects.Chunks) == 0; one != (len(objects.Head.Chunks) == 0) || one != (len(objects.Head.Content) > 0) {
				t.Errorf("%d chunks, the head names %d and has %d bytes", len(objects.Chunks), len(objects.Head.Chunks), len(objects.Head.Content))
			}
			if size < maxPacked/2 && len(objects.Chunks) > 0 {
				t.Error("what fits into one object is in chunks")
			}
			if objects.Head.Name != stored.ID || objects.Head.SHA256Sum != stored.Digest {
				t.Errorf("the head is %s with digest %s", objects.Head.Name, objects.Head.SHA256Sum)
			}
			asked := 0
			back, err := Load(objects.Head, byName(objects, &asked))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(back, manifest) || asked != len(objects.Chunks) {
				t.Errorf("what comes back differs, or %d chunks were asked for %d times", len(objects.Chunks), asked)
			}
		})
	}
}

// Whatever is missing, damaged or swapped in a set of chunks is an error, never a manifest.
func TestDamagedObjectsAreRefused(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	big := Manifest{Resources: []fleet.BundleResource{noise(t, random, "a", 2*maxPacked)}}
	small := Manifest{Resources: []fleet.BundleResource{{Name: "a.yaml", Content: "a: 1\n"}}}
	_, other := split(t, Manifest{Resources: []fleet.BundleResource{noise(t, random, "b", 2*maxPacked)}})
	for name, test := range map[string]struct {
		manifest Manifest
		damage   func(*Objects)
		want     string
	}{
		"a wrong name":         {small, func(o *Objects) { o.Head.Name = "s-0" }, "holds something else"},
		"no bytes":             {small, func(o *Objects) { o.Head.Content = nil }, "unpack"},
		"a cut head":           {small, func(o *Objects) { o.Head.Content = o.Head.Content[:20] }, "EOF"},
		"a missing chunk":      {big, func(o *Objects) { o.Chunks = o.Chunks[:1] }, "no chunk"},
		"a chunk not named":    {big, func(o *Objects) { o.Head.Chunks = o.Head.Chunks[:2] }, "EOF"},
		"a changed chunk":      {big, func(o *Objects) { o.Chunks[1].Content = append([]byte{0}, o.Chunks[1].Content[1:]...) }, "something else"},
		"a shortened chunk":    {big, func(o *Objects) { o.Chunks[2].Content = o.Chunks[2].Content[:5] }, "something else"},
		"chunks swapped":       {big, func(o *Objects) { n := o.Head.Chunks; n[1], n[2] = n[2], n[1] }, ""},
		"chunks of another":    {big, func(o *Objects) { o.Head.Chunks, o.Chunks = other.Head.Chunks, other.Chunks }, "something else"},
		"all of another":       {big, func(o *Objects) { name := o.Head.Name; *o = other; o.Head = o.Head.DeepCopy(); o.Head.Name = name }, "something else"},
		"more than it unpacks": {big, func(o *Objects) { o.Head.Chunks = append(o.Head.Chunks, o.Head.Chunks[0]) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, objects := split(t, test.manifest)
			test.damage(&objects)
			asked := 0
			got, err := Load(objects.Head, byName(objects, &asked))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if got.Resources != nil {
				t.Error("a manifest comes with the error")
			}
		})
	}
}

// The error of whoever gets chunks is still its own: it has a class.
func TestLoadKeepsTheGettersError(t *testing.T) {
	_, objects := split(t, Manifest{Resources: []fleet.BundleResource{noise(t, rand.New(rand.NewPCG(5, 6)), "a", 2*maxPacked)}})
	gone := errors.New("gone")
	if _, err := Load(objects.Head, func(string) (*fleet.Content, error) { return nil, gone }); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
}

func TestReadManifest(t *testing.T) {
	manifest := Manifest{Resources: []fleet.BundleResource{{Name: "a", Content: "1"}, {Name: "b", Content: "2", Encoding: "x"}}}
	stored, err := manifest.Store()
	if err != nil {
		t.Fatal(err)
	}
	text, err := stored.JSON()
	if err != nil {
		t.Fatal(err)
	}
	empty, err := Manifest{}.Store()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		text, id string
		want     Manifest
		wantErr  string
	}{
		"canonical":        {string(text), stored.ID, manifest, ""},
		"another form":     {`{"x":{"resources":[1]},"resources":[{"content":"1","name":"a"},{"name":"b","content":"2","encoding":"x"}]}`, stored.ID, manifest, ""},
		"no resources":     {"{}\n", empty.ID, Manifest{}, ""},
		"null":             {`{"resources":null}`, empty.ID, Manifest{}, ""},
		"another's":        {"{}\n", stored.ID, Manifest{}, "something else"},
		"no object":        {`[]`, empty.ID, Manifest{}, "belongs"},
		"no list":          {`{"resources":{}}`, empty.ID, Manifest{}, "no list"},
		"cut":              {string(text[:len(text)-4]), stored.ID, Manifest{}, "EOF"},
		"nothing":          {``, empty.ID, Manifest{}, "EOF"},
		"files no objects": {`{"resources":["a"]}`, empty.ID, Manifest{}, "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(test.text), test.id)
			if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			if err == nil && !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// endless is a manifest of one file that never ends.
type endless struct{ begun bool }

func (e *endless) Read(into []byte) (int, error) {
	if !e.begun {
		e.begun = true
		return copy(into, `{"resources":[{"name":"a"}`), nil
	}
	for i := range into {
		into[i] = ' '
	}
	return len(into), nil
}

func TestReadIsBounded(t *testing.T) {
	if _, err := readUpTo(&endless{}, "s-a", 1<<20); !errors.Is(err, ErrTooLarge) {
		t.Errorf("endless content: %v, want ErrTooLarge", err)
	}
	many := strings.NewReader(`{"resources":[` + strings.Repeat("{},", maxResources) + `{}]}`)
	if _, err := Read(many, "s-a"); err == nil || !strings.Contains(err.Error(), "files") {
		t.Errorf("very many files: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"resources":[{"name":"a","content":"b"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var plain Manifest
		want, err := "", json.Unmarshal(data, &plain)
		if err == nil {
			stored, err := plain.Store()
			if err != nil {
				t.Fatal(err)
			}
			want = stored.ID
		}
		if got, err := Read(bytes.NewReader(data), want); err == nil {
			if stored, err := got.Store(); err != nil || stored.ID != want {
				t.Errorf("read %s as %+v, want what %s names", data, got, want)
			}
		}
	})
}

func TestDetach(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for name, test := range map[string]struct {
		size    int
		storage fleet.ContentsStorage
		want    bool
	}{
		"small on the hub":    {1000, fleet.ContentsOnHub, false},
		"large on the hub":    {maxInline, fleet.ContentsOnHub, true},
		"very large":          {2 << 20, fleet.ContentsOnHub, true},
		"small in a registry": {1000, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := &fleet.Bundle{Spec: fleet.BundleSpec{Resources: []fleet.BundleResource{noise(t, random, "a", test.size)}}}
			want, err := Manifest{Resources: bundle.Spec.Resources}.Store()
			if err != nil {
				t.Fatal(err)
			}
			before, err := Summarize(bundle.Spec)
			if err != nil {
				t.Fatal(err)
			}
			stored, detached, err := Detach(bundle, test.storage)
			if err != nil || detached != test.want {
				t.Fatalf("detached %v, %v, want %v", detached, err, test.want)
			}
			size, err := json.Marshal(bundle)
			if err != nil || len(size) > maxInline {
				t.Errorf("the bundle has %d bytes, %v", len(size), err)
			}
			after, err := Summarize(bundle.Spec)
			if err != nil || after.ManifestID != before.ManifestID {
				t.Errorf("the manifest's id changes from %s to %s, %v", before.ManifestID, after.ManifestID, err)
			}
			if !detached {
				return
			}
			if stored.ID != want.ID || stored.Size != want.Size || after.SpecDigest == before.SpecDigest {
				t.Errorf("stored %s, want %s", stored.ID, want.ID)
			}
			if InRegistry(&bundle.Spec) == OnHub(&bundle.Spec) || OnHub(&bundle.Spec) != (test.storage == fleet.ContentsOnHub) {
				t.Errorf("it says that its files are in %q", bundle.Spec.ContentsStorage)
			}
			if _, again, err := Detach(bundle, test.storage); again || err != nil {
				t.Errorf("a detached bundle is detached again: %v", err)
			}
		})
	}
}

func TestCheckOptions(t *testing.T) {
	bundle := &fleet.Bundle{Spec: fleet.BundleSpec{Resources: []fleet.BundleResource{{Content: strings.Repeat("x", 1<<20)}}}}
	if err := CheckOptions(bundle); err != nil {
		t.Errorf("large files count as options: %v", err)
	}
	bundle.Annotations = map[string]string{"a": strings.Repeat("x", maxOptions)}
	if err := CheckOptions(bundle); err == nil {
		t.Error("very large options are no error")
	}
}
