package fleetyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const (
	// ReasonInvalid is the reason of every error of this package.
	ReasonInvalid = "InvalidFleetYAML"

	// maxSize bounds the file, in bytes, and maxNodes what aliases make of it.
	maxSize  = 4 << 20
	maxNodes = 200_000
	maxDepth = 200
)

// Parse reads a fleet.yaml; path is its name in messages. An empty file is a valid one. Errors are of
// class Stalled and name the file and, where it is known, the line; all that is wrong is reported, not
// only the first mistake.
func Parse(data []byte, path string) (*File, []Warning, error) {
	if len(data) > maxSize {
		return nil, nil, fault.New(fault.Stalled, ReasonInvalid, "read %s: %d bytes are more than the limit of %d", path, len(data), maxSize)
	}
	p := &parser{path: path, positions: map[string]*yaml.Node{}, fields: map[reflect.Type]fieldSet{}}
	root, err := p.document(data)
	if err != nil {
		return nil, nil, fault.New(fault.Stalled, ReasonInvalid, "read %s: %w%s", path, located(err), hint(err))
	}
	file := &File{}
	if root != nil {
		tree := p.convert(root, reflect.TypeFor[File](), "", 0)
		if len(p.problems) == 0 {
			if file, err = decode(tree); err != nil {
				p.problems = append(p.problems, fmt.Errorf("read %s: %w", path, err))
				file = &File{}
			}
		}
	}
	if len(p.problems) == 0 {
		p.check(file)
	}
	if len(p.problems) > 0 {
		return nil, p.warnings, fault.Wrap(fault.Stalled, ReasonInvalid, errors.Join(p.problems...))
	}
	return file, p.warnings, nil
}

// located names the line also where it is the first, which the reader leaves out.
func located(err error) error {
	if message, found := strings.CutPrefix(err.Error(), "yaml: "); found && !strings.HasPrefix(message, "line ") {
		return fmt.Errorf("yaml: line 1: %s", message)
	}
	return err
}

// hint adds to the YAML reader's message what its most frequent cause is.
func hint(err error) string {
	if strings.Contains(err.Error(), "character that cannot start any token") {
		return "; indent with spaces, not tabs, and quote texts that start with a special character"
	}
	if strings.Contains(err.Error(), "did not find expected ',' or '}'") {
		return "; a text with braces in it, such as a template, must be quoted"
	}
	return ""
}

type parser struct {
	path      string
	positions map[string]*yaml.Node
	fields    map[reflect.Type]fieldSet
	warnings  []Warning
	problems  []error
	nodes     int
	overflown bool
}

// document returns the first document's root, or nil when there is nothing in it.
func (p *parser) document(data []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, next yaml.Node
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	if err := decoder.Decode(&next); err == nil && len(next.Content) > 0 && !isNull(next.Content[0]) {
		p.warn(next.Content[0], "only the first document of the file is read, and this is another one")
	} else if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return document.Content[0], nil
}

func (p *parser) warn(node *yaml.Node, format string, args ...any) {
	warning := Warning{File: p.path, Message: fmt.Sprintf(format, args...)}
	if node != nil {
		warning.Line, warning.Column = node.Line, node.Column
	}
	p.warnings = append(p.warnings, warning)
}

func (p *parser) fail(node *yaml.Node, format string, args ...any) {
	const enough = 20
	if len(p.problems) >= enough {
		return
	}
	where := p.path
	if node != nil {
		where = fmt.Sprintf("%s:%d:%d", p.path, node.Line, node.Column)
	}
	p.problems = append(p.problems, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}
