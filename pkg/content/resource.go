package content

import (
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
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
	text, err := packText(data)
	if err != nil {
		return fleet.BundleResource{}, fmt.Errorf("compress %s: %w", name, err)
	}
	return fleet.BundleResource{Name: name, Content: text, Encoding: EncodingGzip}, nil
}

// packText returns data compressed, as base64. It makes nothing but the result: beside a large file there is
// no room for copies of it.
func packText(data []byte) (string, error) {
	var text strings.Builder
	// What does not compress becomes longer by five bytes in 64 KiB, and the frame. Memory that is not
	// written to costs nothing.
	const frame = 64
	text.Grow(base64.StdEncoding.EncodedLen(len(data) + len(data)>>12 + frame))
	encoder := base64.NewEncoder(base64.StdEncoding, &text)
	writer := gzip.NewWriter(encoder)
	if _, err := writer.Write(data); err != nil {
		return "", err
	}
	if err := errors.Join(writer.Close(), encoder.Close()); err != nil {
		return "", err
	}
	if text.Len() < text.Cap()/2 {
		return strings.Clone(text.String()), nil
	}
	return text.String(), nil
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
