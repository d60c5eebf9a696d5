package schema

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/bundle/fleetyaml"
)

// Every key that the schema knows is read, and none of them belongs to the engine.
func TestEveryKeyIsRead(t *testing.T) {
	example := exampleOf(Of())
	data, err := yaml.Marshal(example)
	if err != nil {
		t.Fatal(err)
	}
	_, warnings, err := fleetyaml.Parse(data, "fleet.yaml")
	if err != nil && !strings.Contains(err.Error(), "fleet.yaml:") {
		t.Fatal(err)
	}
	for _, warning := range warnings {
		if strings.Contains(warning.Message, "unknown key") || strings.Contains(warning.Message, "set by the engine") {
			t.Errorf("the schema knows more than the parser: %s", warning)
		}
	}
	if len(example.(map[string]any)) < 25 {
		t.Errorf("the schema has %d keys", len(example.(map[string]any)))
	}
}

// exampleOf returns a value with every key of a schema.
func exampleOf(schema map[string]any) any {
	if choices, ok := schema["enum"].([]any); ok {
		return choices[0]
	}
	switch schema["type"] {
	case "object":
		result := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		for key, property := range properties {
			result[key] = exampleOf(property.(map[string]any))
		}
		return result
	case "array":
		return []any{exampleOf(schema["items"].(map[string]any))}
	case "boolean":
		return true
	case "integer":
		return 1
	case "string":
		return "1s"
	}
	return 1
}

// Every fleet.yaml of the recorded repositories fits the schema.
func TestRecordedFilesFit(t *testing.T) {
	checked := 0
	err := filepath.WalkDir("../../bundle/testdata/golden", func(name string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Base(name) != "fleet.yaml" {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		var value any
		if err := yaml.Unmarshal(data, &value); err != nil {
			return err
		}
		if value != nil {
			fits(t, name, Of(), value)
			checked++
		}
		return nil
	})
	if err != nil || checked < 20 {
		t.Errorf("checked %d files: %v", checked, err)
	}
}

func fits(t *testing.T, path string, schema map[string]any, value any) {
	t.Helper()
	switch value := value.(type) {
	case map[string]any:
		if schema["type"] != "object" {
			t.Errorf("%s: an object, want %v", path, schema["type"])
			return
		}
		properties, _ := schema["properties"].(map[string]any)
		for key, inner := range value {
			switch {
			case properties[key] != nil:
				fits(t, path+"."+key, properties[key].(map[string]any), inner)
			case schema["additionalProperties"] == false:
				t.Errorf("%s: unknown key %s", path, key)
			}
		}
	case []any:
		if schema["type"] != "array" {
			t.Errorf("%s: a list, want %v", path, schema["type"])
			return
		}
		for _, item := range value {
			fits(t, path+"[]", schema["items"].(map[string]any), item)
		}
	case string:
		if schema["type"] != "string" && schema["oneOf"] == nil {
			t.Errorf("%s: a text, want %v", path, schema["type"])
		}
	case bool:
		if schema["type"] != "boolean" {
			t.Errorf("%s: a truth value, want %v", path, schema["type"])
		}
	}
}
