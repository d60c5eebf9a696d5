package fieldpath

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Path leads to fields of an object.
type Path []step

// step is one way down: by name in a map, by position in a list, or to the members of a list for which a
// comparison holds. A pointer's number may be a name or a position; the object decides.
type step struct {
	name     string
	position int
	isName   bool
	isIndex  bool
	isAll    bool
	key      string // of the comparison [?(@.key=="name")]
}

var (
	word     = regexp.MustCompile(`^[^.\[\]]+`)
	index    = regexp.MustCompile(`^\[(\d{1,6})\]`)
	quoted   = regexp.MustCompile(`^\[(?:'([^']*)'|"([^"]*)")\]`)
	selected = regexp.MustCompile(`^\[\?\(\s*@\.([A-Za-z0-9_-]+)\s*==\s*(?:'([^']*)'|"([^"]*)")\s*\)\]`)
)

// ParsePointer reads a JSON pointer (RFC 6901). The empty pointer, the whole object, is refused.
func ParsePointer(text string) (Path, error) {
	if !strings.HasPrefix(text, "/") {
		return nil, fmt.Errorf("%q is no JSON pointer: it starts with /", text)
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	var path Path
	for part := range strings.SplitSeq(text[1:], "/") {
		next := step{name: unescape.Replace(part), isName: true}
		if position, err := strconv.Atoi(part); err == nil && position >= 0 {
			next.position, next.isIndex = position, true
		}
		path = append(path, next)
	}
	return path, nil
}

// ParsePath reads a JSONPath: .a.b, ['a.b'], [0], [*] and [?(@.name=="x")], with or without $ or braces.
func ParsePath(text string) (Path, error) {
	rest := strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(rest, "{"); ok {
		rest = strings.TrimSuffix(inner, "}")
	}
	rest = strings.TrimPrefix(rest, "$")
	var path Path
	for rest != "" {
		next, length := readStep(rest)
		if length == 0 {
			return nil, fmt.Errorf("%q is no JSONPath that is understood: unexpected %q", text, rest)
		}
		path = append(path, next)
		rest = rest[length:]
	}
	if len(path) == 0 {
		return nil, fmt.Errorf("%q names no field", text)
	}
	return path, nil
}

func readStep(text string) (step, int) {
	if strings.HasPrefix(text, "[*]") {
		return step{isAll: true}, len("[*]")
	}
	if found := index.FindStringSubmatch(text); found != nil {
		position, err := strconv.Atoi(found[1])
		return step{position: position, isIndex: err == nil}, len(found[0])
	}
	if found := quoted.FindStringSubmatch(text); found != nil {
		return step{name: found[1] + found[2], isName: true}, len(found[0])
	}
	if found := selected.FindStringSubmatch(text); found != nil {
		return step{key: found[1], name: found[2] + found[3], isAll: true}, len(found[0])
	}
	dotted, dots := strings.CutPrefix(text, ".")
	if name := word.FindString(dotted); dots && name != "" {
		return step{name: name, isName: true}, len(name) + 1
	}
	return step{}, 0
}
