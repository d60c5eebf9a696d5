package content

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// MaxStored bounds the JSON of one manifest, in bytes.
const MaxStored = 256 << 20

// maxResources bounds the files of one manifest: each takes memory even when it is empty.
const maxResources = 100_000

// ErrTooLarge is returned for content that unpacks to more than a limit.
var ErrTooLarge = errors.New("content unpacks to more than the limit")

// Read reads the JSON of a manifest and checks that it is the one of that id. It holds one file more than
// what it returns, not the JSON as well.
func Read(r io.Reader, id string) (Manifest, error) { return readUpTo(r, id, MaxStored) }

func readUpTo(r io.Reader, id string, limit int64) (Manifest, error) {
	digest := sha256.New()
	bounded := &io.LimitedReader{R: io.TeeReader(r, digest), N: limit + 1}
	decoder := json.NewDecoder(bounded)
	manifest, err := decodeManifest(decoder)
	if err == nil {
		_, err = io.Copy(io.Discard, bounded)
	}
	switch {
	case bounded.N <= 0:
		return Manifest{}, ErrTooLarge
	case err != nil:
		return Manifest{}, err
	}
	if names.Content(hex.EncodeToString(digest.Sum(nil))) == id {
		return manifest, nil
	}
	// Others may write the same manifest in another form.
	stored, err := manifest.Store()
	if err != nil {
		return Manifest{}, err
	}
	if stored.ID != id {
		return Manifest{}, fmt.Errorf("it holds something else: its digest names it %s", stored.ID)
	}
	return manifest, nil
}

// decodeManifest reads the files one by one, because a decoder keeps the whole text of a value until it
// has its end.
func decodeManifest(decoder *json.Decoder) (Manifest, error) {
	var manifest Manifest
	if err := expect(decoder, json.Delim('{')); err != nil {
		return manifest, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return manifest, err
		}
		if key != "resources" {
			var skipped json.RawMessage
			if err := decoder.Decode(&skipped); err != nil {
				return manifest, err
			}
			continue
		}
		if manifest.Resources, err = decodeResources(decoder); err != nil {
			return manifest, err
		}
	}
	return manifest, expect(decoder, json.Delim('}'))
}

func decodeResources(decoder *json.Decoder) ([]fleet.BundleResource, error) {
	token, err := decoder.Token()
	if err != nil || token == nil {
		return nil, err
	}
	if token != json.Delim('[') {
		return nil, errors.New("its resources are no list")
	}
	var resources []fleet.BundleResource
	for decoder.More() {
		if len(resources) == maxResources {
			return nil, fmt.Errorf("it has more than %d files", maxResources)
		}
		var resource fleet.BundleResource
		if err := decoder.Decode(&resource); err != nil {
			return nil, err
		}
		resources = append(resources, resource)
	}
	return resources, expect(decoder, json.Delim(']'))
}

func expect(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err == nil && token != want {
		err = fmt.Errorf("its JSON has %v where %v belongs", token, want)
	}
	return err
}

// unpacker reads what pack wrote.
func unpacker(packed io.Reader) (io.Reader, error) { return gzip.NewReader(packed) }
