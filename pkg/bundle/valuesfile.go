package bundle

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlv2 "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// parseValues reads a values file; an empty one has no values.
func parseValues(data []byte) (map[string]any, error) {
	content, err := readTree(data)
	if err != nil {
		if strings.Contains(err.Error(), "invalid map key") {
			// The reader's message shows how it stores mappings, which helps nobody.
			return nil, errors.New("not YAML: a mapping is used as a key; quote texts that start with a brace, and note that values files are no templates of Helm's")
		}
		return nil, fmt.Errorf("not YAML: %s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "), "yaml: "))
	}
	values, isMapping := content.(map[string]any)
	if !isMapping && content != nil {
		return nil, errors.New("want a mapping of values, got a list or a single value")
	}
	return values, nil
}

// readTree reads a document as Helm does, where every number is a float. Helm goes by way of JSON, which takes
// three times as long; what JSON would change or refuse still takes that way.
func readTree(data []byte) (any, error) {
	var tree any
	if err := yamlv2.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	content, err := viaJSON(tree)
	if !errors.Is(err, errOnlyJSON) {
		return content, err
	}
	err = yaml.Unmarshal(data, &content)
	return content, err
}

// errOnlyJSON says that only JSON knows what becomes of a value.
var errOnlyJSON = errors.New("not simple")

// viaJSON returns what is left of a tree that was written as JSON and read again.
func viaJSON(value any) (any, error) {
	switch typed := value.(type) {
	case nil, bool:
		return value, nil
	case string:
		if utf8.ValidString(typed) {
			return value, nil
		}
	case int:
		return float64(typed), nil
	case uint64:
		return float64(typed), nil
	case float64:
		if !math.IsNaN(typed) && !math.IsInf(typed, 0) {
			return value, nil
		}
	case []any:
		for i, item := range typed {
			converted, err := viaJSON(item)
			if err != nil {
				return nil, err
			}
			typed[i] = converted
		}
		return typed, nil
	case map[any]any:
		return textKeys(typed)
	}
	return nil, errOnlyJSON
}

func textKeys(mapping map[any]any) (any, error) {
	out := make(map[string]any, len(mapping))
	for key, item := range mapping {
		var name string
		switch typed := key.(type) {
		case string:
			if name = typed; !utf8.ValidString(name) {
				return nil, errOnlyJSON
			}
		case int:
			name = strconv.Itoa(typed)
		case bool:
			name = strconv.FormatBool(typed)
		default:
			return nil, errOnlyJSON
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("the key %q is there twice, once with and once without quotes", name)
		}
		converted, err := viaJSON(item)
		if err != nil {
			return nil, err
		}
		out[name] = converted
	}
	return out, nil
}
