package fleetyaml

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/fairlead-dev/fairlead/pkg/names"
)

// pair is a key with its value, after merge keys were resolved.
type pair struct {
	name       string
	key, value *yaml.Node
}

// fieldSet maps the JSON names of a struct to the types they hold.
type fieldSet map[string]reflect.Type

// pairs returns the entries of a mapping in order; own keys win over merged ones (<<).
// Keys of free-form mappings are resolved like values, so that "on" and true are the same key.
func (p *parser) pairs(node *yaml.Node, resolve bool, depth int) []pair {
	var out []pair
	seen := map[string]*yaml.Node{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if key.Kind != yaml.ScalarNode {
			p.fail(key, "a key must be a text")
			continue
		}
		name := key.Value
		if resolve && !isNull(key) {
			if name = keyText(key); name != key.Value && key.Style == 0 && isWord(key.Value) {
				p.warn(key, "the key %s is read as %q, as YAML 1.1 and Helm have it; quote it if the word is meant", key.Value, name)
			}
		}
		if first, twice := seen[name]; twice {
			p.fail(key, "%q is set twice, first in line %d", name, first.Line)
			continue
		}
		seen[name] = key
		out = append(out, pair{name, key, value})
	}
	for _, source := range merged {
		out = p.merge(out, seen, source, resolve, depth+1)
	}
	return out
}

func (p *parser) merge(out []pair, seen map[string]*yaml.Node, source *yaml.Node, resolve bool, depth int) []pair {
	if source.Kind == yaml.AliasNode {
		source = source.Alias
	}
	if !p.admit(source, depth) {
		return out
	}
	switch source.Kind {
	case yaml.SequenceNode:
		for _, item := range source.Content {
			out = p.merge(out, seen, item, resolve, depth+1)
		}
	case yaml.MappingNode:
		for _, entry := range p.pairs(source, resolve, depth) {
			if seen[entry.name] == nil {
				seen[entry.name] = entry.key
				out = append(out, entry)
			}
		}
	default:
		p.fail(source, "a merge key needs a mapping, got %s", kindOf(source))
	}
	return out
}

// isWord says that a text is made of letters: one that is read as something else surprises, a number does not.
func isWord(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}

func keyText(key *yaml.Node) string {
	switch value := plain(key).(type) {
	case string:
		return value
	case bool, int64:
		return fmt.Sprint(value)
	}
	return key.Value
}

// object converts a mapping that ends in a struct: unknown keys are left out with a warning.
func (p *parser) object(node *yaml.Node, want reflect.Type, path string, depth int) any {
	if node.Kind != yaml.MappingNode {
		p.fail(node, "%s: want a mapping of keys to values, got %s", orFile(path), kindOf(node))
		return nil
	}
	known := p.known(want)
	out := map[string]any{}
	for _, entry := range p.pairs(node, false, depth) {
		name, field := p.field(known, entry, path)
		if field == nil {
			continue
		}
		if _, twice := out[name]; twice {
			p.fail(entry.key, "%q is set twice", join(path, name))
			continue
		}
		at := join(path, name)
		p.positions[at] = entry.key
		out[name] = p.convert(entry.value, field, at, depth+1)
	}
	return out
}

// field finds the type behind a key; spelling in another case is accepted, as upstream does.
func (p *parser) field(known fieldSet, entry pair, path string) (string, reflect.Type) {
	if internal[entry.name] {
		p.warn(entry.key, "%q is set by the engine and not read from here", join(path, entry.name))
		return "", nil
	}
	if field, ok := known[entry.name]; ok {
		return entry.name, field
	}
	for name, field := range known {
		if strings.EqualFold(name, entry.name) && !internal[name] {
			p.warn(entry.key, "%q is read as %q; write it so", join(path, entry.name), name)
			return name, field
		}
	}
	p.warn(entry.key, "unknown key %q is ignored%s", join(path, entry.name), p.suggest(known, entry))
	return "", nil
}

// suggest names the key that was probably meant: the nearest one here, or the same one a level deeper.
func (p *parser) suggest(known fieldSet, entry pair) string {
	name := entry.name
	best, distance := "", max(2, len(name)/3)+1
	var deeper []string
	for candidate, field := range known {
		if internal[candidate] {
			continue
		}
		if d := names.Distance(strings.ToLower(name), strings.ToLower(candidate)); d < distance || (d == distance && candidate < best) {
			best, distance = candidate, d
		}
		for field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		if field.Kind() == reflect.Struct && p.known(field)[name] != nil {
			deeper = append(deeper, candidate+"."+name)
		}
	}
	if len(deeper) > 0 && distance > 0 {
		slices.Sort(deeper)
		return fmt.Sprintf("; did you mean %q?", deeper[0])
	}
	if best == "" && known["matchLabels"] != nil && entry.value.Kind == yaml.ScalarNode {
		// Without it the selector is empty, and an empty one selects everything.
		return fmt.Sprintf("; did you mean \"matchLabels.%s\"?", name)
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// known returns the JSON fields of a struct; a field hides one of the same name further in.
func (p *parser) known(t reflect.Type) fieldSet {
	if set, ok := p.fields[t]; ok {
		return set
	}
	set := fieldSet{}
	p.fields[t] = set
	var inner []reflect.Type
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported():
		case field.Anonymous && name == "":
			inner = append(inner, field.Type)
		case name != "":
			set[name] = field.Type
		}
	}
	for _, embedded := range inner {
		for name, field := range p.known(embedded) {
			if set[name] == nil {
				set[name] = field
			}
		}
	}
	return set
}

func orFile(path string) string {
	if path == "" {
		return "the file"
	}
	return path
}
