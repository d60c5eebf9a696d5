package content

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
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
	resource, _, err := EncodeFrom(name, int64(len(data)), bytes.NewReader(data))
	return resource, err
}

// EncodeFrom returns what is read as a resource, compressed, and its size. It makes nothing but the result:
// beside a large file there is no room for copies of it. expected is how much will probably come.
func EncodeFrom(name string, expected int64, from io.Reader) (fleet.BundleResource, int64, error) {
	var text strings.Builder
	// What does not compress becomes longer by five bytes in 64 KiB, and the frame. Memory that is not
	// written to costs nothing.
	const frame = 64
	text.Grow(base64.StdEncoding.EncodedLen(int(expected + expected>>12 + frame)))
	encoder := base64.NewEncoder(base64.StdEncoding, &text)
	writer := gzip.NewWriter(encoder)
	size, err := io.Copy(writer, from)
	if err == nil {
		err = errors.Join(writer.Close(), encoder.Close())
	}
	if err != nil {
		return fleet.BundleResource{}, size, fmt.Errorf("compress %s: %w", name, err)
	}
	packed := text.String()
	if text.Len() < text.Cap()/2 {
		packed = strings.Clone(packed)
	}
	return fleet.BundleResource{Name: name, Content: packed, Encoding: EncodingGzip}, size, nil
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
