package content

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// Manifest is the files of a bundle as they are stored and digested. The order of the files counts.
type Manifest struct {
	Resources []fleet.BundleResource `json:"resources,omitempty"`
}

// Stored is a manifest in the form that is kept: its JSON, and the names made from it.
type Stored struct {
	// ID names the Content object and starts every deployment id.
	ID string
	// Digest is the SHA-256 of the JSON in hex.
	Digest string
	// Size of the JSON, in bytes.
	Size int
	// manifest is what the JSON is written from: both at a time are a bundle twice in memory.
	manifest Manifest
}

// Store returns the canonical form of the manifest, which must not change any more.
func (m Manifest) Store() (Stored, error) {
	hash, size := sha256.New(), counter(0)
	if err := m.write(io.MultiWriter(hash, &size)); err != nil {
		return Stored{}, err
	}
	digest := hex.EncodeToString(hash.Sum(nil))
	return Stored{ID: names.Content(digest), Digest: digest, Size: int(size), manifest: m}, nil
}

// counter counts what is written.
type counter int

// Write implements io.Writer.
func (c *counter) Write(data []byte) (int, error) {
	*c += counter(len(data))
	return len(data), nil
}

// JSON returns the canonical form.
func (s Stored) JSON() ([]byte, error) {
	var data bytes.Buffer
	data.Grow(s.Size)
	if err := s.manifest.write(&data); err != nil {
		return nil, fmt.Errorf("write content %s: %w", s.ID, err)
	}
	return data.Bytes(), nil
}

// write writes what line returns, file by file and without a copy of compressed ones.
func (m Manifest) write(to io.Writer) error {
	if len(m.Resources) == 0 {
		_, err := io.WriteString(to, "{}\n")
		return err
	}
	between := `{"resources":[`
	for _, resource := range m.Resources {
		if _, err := io.WriteString(to, between); err != nil {
			return err
		}
		if err := writeResource(to, resource); err != nil {
			return fmt.Errorf("encode %s: %w", resource.Name, err)
		}
		between = ","
	}
	_, err := io.WriteString(to, "]}\n")
	return err
}

// stem stands for a text that JSON writes as it is.
const stem = "H4sI"

func writeResource(to io.Writer, resource fleet.BundleResource) error {
	text := resource.Content
	plain := strings.HasPrefix(text, stem) && isBase64(text)
	if plain {
		resource.Content = stem
	}
	data, err := json.Marshal(resource)
	if err != nil {
		return err
	}
	before, after, found := bytes.Cut(data, []byte(`"content":"`+stem))
	if !plain || !found {
		_, err = to.Write(data)
		return err
	}
	if _, err := fmt.Fprintf(to, `%s"content":"`, before); err != nil {
		return err
	}
	// In pieces: what takes no strings gets a copy.
	const piece = 64 << 10
	for len(text) > 0 {
		n := min(piece, len(text))
		if _, err := io.WriteString(to, text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	_, err = to.Write(after)
	return err
}

func isBase64(text string) bool {
	for i := range len(text) {
		c := text[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '/' || c > '9') && c != '+' && c != '=' {
			return false
		}
	}
	return true
}

// DeploymentID returns "<manifest id>:<digest of the options>". What does not change the objects on
// the member (diff, correctDrift, rules of readiness) does not count.
func DeploymentID(manifestID string, options fleet.BundleDeploymentOptions) (string, error) {
	options.Diff = nil
	options.CorrectDrift = nil
	options.ManifestConfigs = written(options.ManifestConfigs)
	data, err := line(options)
	if err != nil {
		return "", fmt.Errorf("encode options: %w", err)
	}
	return manifestID + ":" + sum(data), nil
}

// written returns the parts of the configurations that say how objects are written.
func written(configs []fleet.ManifestConfig) []fleet.ManifestConfig {
	var kept []fleet.ManifestConfig
	for _, config := range configs {
		if config.Apply != nil {
			kept = append(kept, fleet.ManifestConfig{Resource: config.Resource, Apply: config.Apply})
		}
	}
	return kept
}

// DeploymentValuesHash returns the digest of the two values documents of a BundleDeployment's Secret.
func DeploymentValuesHash(values, staged []byte) string {
	digest := sha256.New()
	digest.Write(values)
	digest.Write(staged)
	return hex.EncodeToString(digest.Sum(nil))
}

// BundleValuesHash returns the digest of the data of a Bundle's values Secret.
func BundleValuesHash(data map[string][]byte) (string, error) {
	encoded, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("encode values: %w", err)
	}
	return sum(encoded), nil
}

// line is a value's JSON with the final newline of json.Encoder, which upstream's digests include.
func line(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	return append(data, '\n'), err
}

func sum(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// pack compresses what is written into pieces, all of them but the last of one size.
func pack(write func(io.Writer) error, size int) ([][]byte, error) {
	pieces := &chunkWriter{size: size}
	writer := gzip.NewWriter(pieces)
	if err := write(writer); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return pieces.full, nil
}

// chunkWriter keeps what is written in pieces.
type chunkWriter struct {
	size int
	full [][]byte
}

// Write implements io.Writer.
func (w *chunkWriter) Write(data []byte) (int, error) {
	written := len(data)
	for len(data) > 0 {
		last := len(w.full) - 1
		if last < 0 || len(w.full[last]) == w.size {
			// The first may stay small; after a full one there is much more.
			var next []byte
			if last >= 0 {
				next = make([]byte, 0, w.size)
			}
			w.full = append(w.full, next)
			continue
		}
		n := min(len(data), w.size-len(w.full[last]))
		w.full[last] = append(w.full[last], data[:n]...)
		data = data[n:]
	}
	return written, nil
}

func unpack(data []byte, limit int64) ([]byte, error) {
	reader, err := unpacker(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(reader, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(out)) > limit {
		return nil, ErrTooLarge
	}
	return out, nil
}
