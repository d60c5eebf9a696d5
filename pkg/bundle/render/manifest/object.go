package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/bundle/render/builtin"
)

// ErrNoObject says that a document is something else than an object of Kubernetes.
var ErrNoObject = errors.New("no Kubernetes object")

// Origin says where an object was written.
type Origin struct {
	File     string
	Document int
	Line     int
}

// String returns "file, document n (line m)", as far as it is known.
func (o Origin) String() string {
	switch {
	case o.Document == 0:
		return o.File
	case o.Line == 0:
		return fmt.Sprintf("%s, document %d", o.File, o.Document)
	}
	return fmt.Sprintf("%s, document %d (line %d)", o.File, o.Document, o.Line)
}

// Object is an object and where it was written.
type Object struct {
	*unstructured.Unstructured
	Origin Origin
}

// IsFile says whether a file is read as manifests, by its name.
func IsFile(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// Parse returns the objects of a file in order, lists taken apart. The error names the file, the
// document and the line.
func Parse(file string, data []byte) ([]Object, error) {
	return parse(data, func(document Document) Origin {
		return Origin{File: file, Document: document.Number, Line: document.Line}
	})
}

// ParseRendered returns the objects of a stream in which Helm names the template of every document; the
// name stands for those that have none.
func ParseRendered(name string, data []byte) ([]Object, error) {
	return parse(data, func(document Document) Origin {
		if document.Source != "" {
			return Origin{File: document.Source}
		}
		return Origin{File: name, Document: document.Number}
	})
}

func parse(data []byte, originOf func(Document) Origin) ([]Object, error) {
	var objects []Object
	for _, document := range Split(data) {
		found, err := parseDocument(document, originOf(document))
		if err != nil {
			return nil, err
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

func parseDocument(document Document, origin Origin) ([]Object, error) {
	values, err := Decode(document)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	var objects []Object
	for _, value := range values {
		found, err := fromValue(value, origin)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", origin, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// Decode returns the values of a document: one of YAML, any number of JSON ones in a row. Integers are
// int64, other numbers float64.
func Decode(document Document) ([]any, error) {
	text := bytes.TrimSpace(document.Text)
	if len(text) > 0 && text[0] == '{' {
		if values, err := decodeJSON(text); err == nil {
			return values, nil
		}
	}
	converted, err := yaml.YAMLToJSON(document.Text)
	if err != nil {
		return nil, fmt.Errorf("not YAML: %s", shiftLine(err, document))
	}
	var value any
	if err := utiljson.Unmarshal(converted, &value); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return []any{value}, nil
}

// decodeJSON reads values one after another; JSON indented by tabs is no YAML, but it is used.
func decodeJSON(data []byte) ([]any, error) {
	var values []any
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		var raw json.RawMessage
		switch err := decoder.Decode(&raw); {
		case errors.Is(err, io.EOF):
			return values, nil
		case err != nil:
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		var value any
		if err := utiljson.Unmarshal(raw, &value); err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		values = append(values, value)
	}
}

func fromValue(value any, origin Origin) ([]Object, error) {
	if value == nil {
		return nil, nil
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("want an object, not %s", kindOf(value))
	}
	if len(fields) == 0 {
		return nil, nil
	}
	for _, key := range []string{"apiVersion", "kind"} {
		if text, ok := fields[key].(string); !ok || text == "" {
			return nil, fmt.Errorf("%w: it has no %s", ErrNoObject, key)
		}
	}
	if metadata, ok := fields["metadata"]; ok && metadata == nil {
		delete(fields, "metadata")
	} else if _, isObject := metadata.(map[string]any); ok && !isObject {
		return nil, fmt.Errorf("metadata is %s, want an object", kindOf(metadata))
	}
	object := &unstructured.Unstructured{Object: fields}
	if isList(object) {
		return fromList(object, origin)
	}
	return []Object{{Unstructured: object, Origin: origin}}, nil
}

// isList says whether an object is a list of objects: v1 List, or the list of a built-in kind. Custom
// resources may well have items of their own and a kind that ends in List.
func isList(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	if !strings.HasSuffix(kind.Kind, "List") {
		return false
	}
	return kind.Kind == "List" || builtin.Has(kind)
}

func fromList(list *unstructured.Unstructured, origin Origin) ([]Object, error) {
	items, ok := list.Object["items"].([]any)
	if !ok && list.Object["items"] != nil {
		return nil, fmt.Errorf("items of %s is %s, want a list", list.GetKind(), kindOf(list.Object["items"]))
	}
	var objects []Object
	for i, item := range items {
		// The items of a typed list need not repeat what the list says.
		if fields, ok := item.(map[string]any); ok && list.GetKind() != "List" && len(fields) > 0 {
			setDefault(fields, "apiVersion", list.GetAPIVersion())
			setDefault(fields, "kind", strings.TrimSuffix(list.GetKind(), "List"))
		}
		found, err := fromValue(item, origin)
		if err != nil {
			return nil, fmt.Errorf("item %d of %s: %w", i+1, list.GetKind(), err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

func setDefault(fields map[string]any, key, value string) {
	if text, ok := fields[key].(string); !ok || text == "" {
		fields[key] = value
	}
}

func kindOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a text"
	case bool:
		return "a truth value"
	case nil:
		return "nothing"
	}
	return "a number"
}
