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
	// Digest is the SHA-256 of JSON in hex.
	Digest string
	// JSON is the canonical form.
	JSON []byte
}

// Store returns the canonical form of the manifest.
func (m Manifest) Store() (Stored, error) {
	const perFile = 128
	size := perFile
	for _, resource := range m.Resources {
		size += perFile + len(resource.Name) + len(resource.Content)
	}
	var data bytes.Buffer
	data.Grow(size) // what is longer than that has no large files in it
	if err := m.write(&data); err != nil {
		return Stored{}, err
	}
	digest := sum(data.Bytes())
	return Stored{ID: names.Content(digest), Digest: digest, JSON: data.Bytes()}, nil
}

// Name returns what Store does, without the JSON.
func (m Manifest) Name() (Stored, error) {
	hash := sha256.New()
	if err := m.write(hash); err != nil {
		return Stored{}, err
	}
	digest := hex.EncodeToString(hash.Sum(nil))
	return Stored{ID: names.Content(digest), Digest: digest}, nil
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

// pack compresses data into pieces, all of them but the last of one size.
func pack(data []byte, size int) ([][]byte, error) {
	pieces := &chunkWriter{size: size}
	writer := gzip.NewWriter(pieces)
	if _, err := writer.Write(data); err != nil {
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
			w.full = append(w.full, nil)
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
