package manifest

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
)

// Document is one document of a stream, not parsed yet.
type Document struct {
	// Number counts the documents of the file that hold anything, from 1.
	Number int
	// Line of the file, from 1, where the document's first byte of meaning is.
	Line int
	// Text without the markers around it.
	Text []byte
	// Source is the file named by a "# Source:" comment, as Helm writes it; empty without one.
	Source string
}

var sourceComment = []byte("# Source: ")

// Split takes a YAML stream apart at its document markers. YAML allows a line that starts with a marker
// nowhere inside a document, so looking at lines is exact. Documents without content are left out.
func Split(data []byte) []Document {
	data = inUTF8(data)
	var documents []Document
	current := pending{line: 1}
	line := 0
	for len(data) > 0 {
		var text []byte
		text, data = cutLine(data)
		line++
		// Files that were put together have the mark of each of them.
		if unmarked, marked := bytes.CutPrefix(text, byteOrderMark); marked && (!current.filled || marker(unmarked) != noMarker) {
			text = unmarked
		}
		switch marker(text) {
		case startMarker:
			documents = current.finish(documents)
			current = pending{line: line}
			current.add(afterMarker(text), line)
		case endMarker:
			documents = current.finish(documents)
			current = pending{line: line + 1}
		default:
			current.add(text, line)
		}
	}
	return current.finish(documents)
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// inUTF8 converts what Windows writes as UTF-16, so that markers are found in it.
func inUTF8(data []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return data
	}
	units := make([]uint16, 0, len(data)/2)
	for rest := data[2:]; len(rest) >= 2; rest = rest[2:] {
		units = append(units, order.Uint16(rest))
	}
	return []byte(string(utf16.Decode(units)))
}

type markerKind int

const (
	noMarker markerKind = iota
	startMarker
	endMarker
)

func marker(line []byte) markerKind {
	if len(line) < 3 || len(line) > 3 && !isBlank(line[3]) {
		return noMarker
	}
	switch string(line[:3]) {
	case "---":
		return startMarker
	case "...":
		return endMarker
	}
	return noMarker
}

// afterMarker returns what follows a marker on its line, which belongs to the document, in its column.
func afterMarker(line []byte) []byte {
	rest := line[3:]
	if content := bytes.TrimSpace(rest); len(content) == 0 || content[0] == '#' {
		return []byte("\n")
	}
	return append([]byte("   "), rest...)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func cutLine(data []byte) (line, rest []byte) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return data[:i+1], data[i+1:]
	}
	return data, nil
}

// pending is the document that is being read.
type pending struct {
	line   int
	text   []byte
	source string
	filled bool
}

func (p *pending) add(line []byte, number int) {
	content := bytes.TrimSpace(line)
	switch {
	case p.filled:
	case len(line) == 0:
		// A file that ends with a byte order mark.
		return
	case len(content) == 0, content[0] == '#', line[0] == '%':
		if p.source == "" && bytes.HasPrefix(content, sourceComment) {
			p.source = string(bytes.TrimSpace(content[len(sourceComment):]))
		}
		if line[0] == '%' {
			return
		}
	default:
		p.filled, p.line = true, number
	}
	p.text = append(p.text, line...)
}

func (p *pending) finish(documents []Document) []Document {
	if !p.filled {
		return documents
	}
	return append(documents, Document{
		Number: len(documents) + 1,
		Line:   p.line,
		Text:   p.text,
		Source: p.source,
	})
}
