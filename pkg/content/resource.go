package content

import (
	"encoding/base64"
	"fmt"
	"unicode/utf8"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// EncodingGzip marks a resource whose content is base64 of gzip.
const EncodingGzip = "base64+gz"

// MaxFile bounds one decoded file, in bytes.
const MaxFile = 64 << 20

// Encode returns a file as a resource: text as it is; everything else, and everything when compress is
// set, as base64 of gzip.
func Encode(name string, data []byte, compress bool) (fleet.BundleResource, error) {
	if !compress && utf8.Valid(data) {
		return fleet.BundleResource{Name: name, Content: string(data)}, nil
	}
	packed, err := pack(data)
	if err != nil {
		return fleet.BundleResource{}, fmt.Errorf("compress %s: %w", name, err)
	}
	return fleet.BundleResource{
		Name:     name,
		Content:  base64.StdEncoding.EncodeToString(packed),
		Encoding: EncodingGzip,
	}, nil
}

// Decode returns the bytes of a resource.
func Decode(resource fleet.BundleResource) ([]byte, error) {
	switch resource.Encoding {
	case "":
		return []byte(resource.Content), nil
	case EncodingGzip:
		packed, err := base64.StdEncoding.DecodeString(resource.Content)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", resource.Name, err)
		}
		data, err := unpack(packed, MaxFile)
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", resource.Name, err)
		}
		return data, nil
	}
	return nil, fmt.Errorf("decode %s: unknown encoding %q, want none or %s", resource.Name, resource.Encoding, EncodingGzip)
}
