package content

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	// MaxObject is how large an object on the hub may be, in bytes of its JSON. API servers take somewhat
	// more; how much depends on their settings and on etcd's.
	MaxObject = 900 << 10
	// maxPacked is how many bytes one Content holds: base64 makes four thirds of them, and 4 KiB are left
	// for the rest of the object.
	maxPacked = (MaxObject - 4<<10) / 4 * 3
	// digestInName is how many hex digits of a chunk's digest are in its name.
	digestInName = 32
)

// Objects are the Contents that hold a manifest. Write the chunks first: once the head can be read,
// everything it names must be there.
type Objects struct {
	// Head has the manifest's id as its name.
	Head *fleet.Content
	// Chunks is empty when the head holds everything, which is how upstream stores contents.
	Chunks []*fleet.Content
}

// Objects returns the Contents that hold the manifest on the hub, none larger than MaxObject.
func (s Stored) Objects() (Objects, error) {
	packed, err := pack(s.manifest.write, maxPacked)
	if err != nil {
		return Objects{}, fmt.Errorf("compress content %s: %w", s.ID, err)
	}
	head := &fleet.Content{SHA256Sum: s.Digest}
	head.Name = s.ID
	if len(packed) == 1 {
		head.Content = packed[0]
		return Objects{Head: head}, nil
	}
	objects := Objects{Head: head}
	for _, data := range packed {
		digest := sum(data)
		chunk := &fleet.Content{Content: data, SHA256Sum: digest}
		chunk.Name = chunkName(s.ID, digest)
		chunk.Labels = map[string]string{fleet.ChunkOfLabel: s.ID}
		objects.Chunks = append(objects.Chunks, chunk)
		head.Chunks = append(head.Chunks, chunk.Name)
	}
	metav1.SetMetaDataAnnotation(&head.ObjectMeta, fleet.ChunksAnnotation, strconv.Itoa(len(head.Chunks)))
	return objects, nil
}

// chunkName holds the digest, so that sets which two writers compressed differently do not mix.
func chunkName(head, digest string) string { return head + "." + digest[:digestInName] }

// Load reads a manifest back and checks it against the digest in the head's name. chunk gets a Content that
// the head names; chunks are asked for one after the other, and one is held at a time.
func Load(head *fleet.Content, chunk func(name string) (*fleet.Content, error)) (Manifest, error) {
	var packed io.Reader = &chunkReader{head: head.Name, names: head.Chunks, get: chunk}
	if len(head.Chunks) == 0 {
		packed = &chunkReader{rest: head.Content}
	}
	unpacked, err := unpacker(packed)
	if err != nil {
		return Manifest{}, fmt.Errorf("unpack content %s: %w", head.Name, err)
	}
	manifest, err := Read(unpacked, head.Name)
	if err != nil {
		return Manifest{}, fmt.Errorf("read content %s: %w", head.Name, err)
	}
	return manifest, nil
}

// chunkReader reads the bytes of chunks one after the other.
type chunkReader struct {
	head  string
	names []string
	get   func(name string) (*fleet.Content, error)
	rest  []byte
}

// Read implements io.Reader.
func (r *chunkReader) Read(into []byte) (int, error) {
	for len(r.rest) == 0 {
		if len(r.names) == 0 {
			return 0, io.EOF
		}
		name := r.names[0]
		chunk, err := r.get(name)
		if err != nil {
			return 0, err
		}
		if chunkName(r.head, sum(chunk.Content)) != name {
			return 0, fmt.Errorf("chunk %s holds something else than its name says", name)
		}
		r.names, r.rest = r.names[1:], chunk.Content
	}
	n := copy(into, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// maxInline is how large a Bundle that holds its files may be when it is written; what is left of MaxObject
// is for its status and the server's own notes.
const maxInline = 768 << 10

// maxOptions is how large a Bundle may be without its files. A deployment holds options twice.
const maxOptions = 384 << 10

// InRegistry says that the files of a bundle are in a registry.
func InRegistry(spec *fleet.BundleSpec) bool {
	return spec.ContentsID != "" && spec.ContentsStorage == ""
}

// OnHub says that the files of a bundle are in a Content that whoever made the Bundle has written.
func OnHub(spec *fleet.BundleSpec) bool {
	return spec.ContentsID != "" && spec.ContentsStorage == fleet.ContentsOnHub
}

// Detach moves the files of a Bundle out of it and leaves their id: the caller stores them before the Bundle
// is written. With storage ContentsOnHub that happens only to a Bundle that would be too large otherwise;
// detached is false for others.
func Detach(bundle *fleet.Bundle, storage fleet.ContentsStorage) (stored Stored, detached bool, err error) {
	if bundle.Spec.ContentsID != "" {
		return Stored{}, false, nil
	}
	stored, err = Manifest{Resources: bundle.Spec.Resources}.Store()
	if err != nil {
		return Stored{}, false, err
	}
	if storage == fleet.ContentsOnHub {
		rest, err := sizeWithoutFiles(bundle)
		if err != nil || rest+stored.Size <= maxInline {
			return Stored{}, false, err
		}
	}
	bundle.Spec.Resources = nil
	bundle.Spec.ContentsID, bundle.Spec.ContentsStorage = stored.ID, storage
	return stored, true, nil
}

// CheckOptions refuses a Bundle that is too large even without its files.
func CheckOptions(bundle *fleet.Bundle) error {
	size, err := sizeWithoutFiles(bundle)
	if err != nil {
		return err
	}
	if size > maxOptions {
		return fmt.Errorf("the options of bundle %s have %d KiB of JSON without its files and Helm values, and may have %d KiB", bundle.Name, size>>10, maxOptions>>10)
	}
	return nil
}

func sizeWithoutFiles(bundle *fleet.Bundle) (int, error) {
	rest := *bundle
	rest.Spec.Resources = nil
	rest.Status = fleet.BundleStatus{}
	data, err := json.Marshal(rest)
	if err != nil {
		return 0, fmt.Errorf("encode bundle %s: %w", bundle.Name, err)
	}
	return len(data), nil
}
