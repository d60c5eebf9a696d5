package wire

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest packet of the protocol, with its four digits of length.
const maxLine = 65520

// lineReader reads git's packet lines: four hexadecimal digits of length, which count themselves,
// and then the content. Length 0000 is a flush.
type lineReader struct {
	r      *bufio.Reader
	buffer [maxLine]byte
	// left is how many bytes may still be read; it bounds what a server can make us read.
	left int64
}

func newLineReader(r io.Reader, limit int64) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 32<<10), left: limit}
}

// next returns the next packet, valid until the following call, and nil for a flush. The error is
// io.EOF when the stream ends between two packets.
func (l *lineReader) next() ([]byte, error) {
	var digits [4]byte
	if _, err := io.ReadFull(l.r, digits[:]); err != nil {
		return nil, err
	}
	var raw [2]byte
	if _, err := hex.Decode(raw[:], digits[:]); err != nil {
		return nil, protocolError("it sent %q where a length belongs", digits[:])
	}
	length := int(raw[0])<<8 | int(raw[1])
	switch {
	case length == 0:
		return nil, nil
	case length < 4 || length > maxLine:
		return nil, protocolError("it sent a packet of length %d", length)
	}
	if l.left -= int64(length); l.left < 0 {
		return nil, errTooLarge
	}
	content := l.buffer[:length-4]
	if _, err := io.ReadFull(l.r, content); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return content, nil
}

func appendLine(to []byte, format string, args ...any) []byte {
	line := fmt.Sprintf(format, args...)
	return fmt.Appendf(to, "%04x%s", len(line)+4, line)
}

func appendFlush(to []byte) []byte { return append(to, "0000"...) }
