package content

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

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
	data, err := line(m)
	if err != nil {
		return Stored{}, fmt.Errorf("encode manifest: %w", err)
	}
	digest := sum(data)
	return Stored{ID: names.Content(digest), Digest: digest, JSON: data}, nil
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

func pack(data []byte) ([]byte, error) {
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if _, err := writer.Write(data); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
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
