package fleetyaml

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"
)

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	genericMap  = "GenericMap"
	intOrString = "IntOrString"
	anyType     = reflect.TypeFor[any]()
	anyMap      = reflect.TypeFor[map[string]any]()
)

// convert turns a node into what encoding/json can write, guided by the Go type it ends in.
func (p *parser) convert(node *yaml.Node, want reflect.Type, path string, depth int) any {
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if !p.admit(node, depth) || isNull(node) {
		return nil
	}
	if want.Name() == genericMap {
		want = anyMap
	}
	switch {
	case want.Name() == intOrString:
		return p.intOrString(node, path)
	case want.Kind() == reflect.String, reflect.PointerTo(want).Implements(unmarshaler):
		return p.text(node, path)
	case want.Kind() == reflect.Struct:
		return p.object(node, want, path, depth)
	case want.Kind() == reflect.Map:
		return p.mapping(node, want.Elem(), path, depth)
	case want.Kind() == reflect.Slice:
		return p.list(node, want.Elem(), path, depth)
	case want.Kind() == reflect.Interface:
		return p.free(node, path, depth)
	}
	return p.scalar(node, want, path)
}

// admit counts a node; false says that the document is over its limits, which is reported once.
func (p *parser) admit(node *yaml.Node, depth int) bool {
	if p.nodes++; p.nodes <= maxNodes && depth <= maxDepth {
		return true
	}
	if !p.overflown {
		p.overflown = true
		p.fail(node, "the document is too large or nested too deeply")
	}
	return false
}

// text returns a scalar as it was written.
func (p *parser) text(node *yaml.Node, path string) any {
	if node.Kind != yaml.ScalarNode {
		p.fail(node, "%s: want a text, got %s", path, kindOf(node))
		return nil
	}
	return node.Value
}

func (p *parser) intOrString(node *yaml.Node, path string) any {
	if number, err := strconv.ParseInt(node.Value, 10, 32); err == nil && node.Kind == yaml.ScalarNode {
		return number
	}
	return p.text(node, path)
}

func (p *parser) scalar(node *yaml.Node, want reflect.Type, path string) any {
	word := map[bool]string{true: "true or false", false: "a whole number"}[want.Kind() == reflect.Bool]
	if node.Kind != yaml.ScalarNode {
		p.fail(node, "%s: want %s, got %s", path, word, kindOf(node))
		return nil
	}
	if want.Kind() == reflect.Bool {
		if value, ok := plain(node).(bool); ok {
			return value
		}
	} else if number, err := strconv.ParseInt(node.Value, 10, 64); err == nil && node.Style == 0 {
		return number
	}
	p.fail(node, "%s: want %s, got %q", path, word, node.Value)
	return nil
}

// free converts a node that no type describes, with YAML 1.1's rules for plain scalars.
func (p *parser) free(node *yaml.Node, path string, depth int) any {
	switch node.Kind {
	case yaml.MappingNode:
		return p.mapping(node, anyType, path, depth)
	case yaml.SequenceNode:
		return p.list(node, anyType, path, depth)
	}
	return plain(node)
}

// plain resolves a scalar. Only these first letters can start something that is no text.
func plain(node *yaml.Node) any {
	const special = "0123456789+-.~nNtTfFyYoO"
	tagged := node.Style&yaml.TaggedStyle != 0
	quoted := node.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	if tagged {
		var value any
		if err := node.Decode(&value); err == nil {
			if _, err := json.Marshal(value); err == nil {
				return value
			}
		}
		return node.Value
	}
	if quoted || node.Value == "" || !strings.Contains(special, node.Value[:1]) || strings.Contains(node.Value, "\n") {
		return node.Value
	}
	if number, err := strconv.ParseInt(node.Value, 10, 64); err == nil && decimal(node.Value) {
		return number
	}
	var value any
	if err := sigsyaml.Unmarshal([]byte(node.Value), &value); err != nil {
		return node.Value
	}
	switch value.(type) {
	case bool, float64, nil:
		return value
	}
	return node.Value
}

// decimal says that every YAML version reads the digits as the same number: no octal, no sign tricks.
func decimal(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits == "0" || (digits[0] >= '1' && digits[0] <= '9')
}

func (p *parser) list(node *yaml.Node, element reflect.Type, path string, depth int) any {
	if node.Kind != yaml.SequenceNode {
		p.fail(node, "%s: want a list, got %s", path, kindOf(node))
		return nil
	}
	out := make([]any, 0, len(node.Content))
	for i, item := range node.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		p.positions[at] = item
		out = append(out, p.convert(item, element, at, depth+1))
	}
	return out
}

func (p *parser) mapping(node *yaml.Node, element reflect.Type, path string, depth int) any {
	if node.Kind != yaml.MappingNode {
		p.fail(node, "%s: want a mapping of keys to values, got %s", path, kindOf(node))
		return nil
	}
	out := map[string]any{}
	for _, pair := range p.pairs(node, element == anyType, depth) {
		at := join(path, pair.name)
		p.positions[at] = pair.key
		out[pair.name] = p.convert(pair.value, element, at, depth+1)
	}
	return out
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.Tag == "!!null"
}

func kindOf(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", shorten(node.Value))
}

// shorten keeps a value recognisable without repeating all of it in a message.
func shorten(text string) string {
	const limit = 20
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit]) + "…"
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
