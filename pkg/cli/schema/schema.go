package schema

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fleetyaml"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

// draft is the version of JSON schema that editors know best.
const draft = "http://json-schema.org/draft-07/schema#"

// engineKeys are fields of the types that are not read from the file.
var engineKeys = map[string]bool{
	"resources": true, "targetRestrictions": true, "contentsId": true, "contentsStorage": true, "helmOpOptions": true, "valuesHash": true,
	"overwrites": true, "allowedTargetNamespaceSelector": true,
}

// leaves are types whose JSON is not that of their fields.
var leaves = map[reflect.Type]map[string]any{
	reflect.TypeFor[fleet.GenericMap]():              {"type": "object"},
	reflect.TypeFor[fleet.Duration]():                {"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
	reflect.TypeFor[intstr.IntOrString]():            {"oneOf": []any{map[string]any{"type": "integer"}, map[string]any{"type": "string", "pattern": `^[0-9]+%?$`}}},
	reflect.TypeFor[metav1.Time]():                   {"type": "string", "format": "date-time"},
	reflect.TypeFor[metav1.LabelSelectorOperator]():  {"type": "string", "enum": []any{"In", "NotIn", "Exists", "DoesNotExist"}},
	reflect.TypeFor[fleet.TargetCustomizationMode](): {"type": "string", "enum": []any{string(fleet.FirstMatch), string(fleet.AllMatches)}},
	reflect.TypeFor[fleet.RolloutType](): {"type": "string", "enum": []any{
		string(fleet.RolloutPartitioned), string(fleet.RolloutAll), string(fleet.RolloutProgressive), string(fleet.RolloutProgressivePerGroup),
	}},
	reflect.TypeFor[fleet.IgnoreCondition](): {"type": "string", "enum": []any{string(fleet.OnMemberPresent), string(fleet.OnMemberChange)}},
	reflect.TypeFor[fleet.ApplyStrategy](): {"type": "string", "enum": []any{
		string(fleet.ApplyHelm), string(fleet.ApplyServerSide), string(fleet.ApplyCreateOnly), string(fleet.ApplyReadOnly),
	}},
	reflect.TypeFor[fleet.BundleState](): {"type": "string", "enum": []any{
		string(fleet.Ready), string(fleet.NotReady), string(fleet.Pending), string(fleet.OutOfSync), string(fleet.Modified), string(fleet.WaitApplied), string(fleet.ErrApplied),
	}},
}

// Of returns the JSON schema of fleet.yaml.
func Of() map[string]any {
	result := schemaOf(reflect.TypeFor[fleetyaml.File]())
	result["$schema"] = draft
	result["title"] = "fleet.yaml"
	result["description"] = "How a folder becomes a bundle, and what differs between clusters."
	return result
}

func schemaOf(t reflect.Type) map[string]any {
	if leaf, ok := leaves[t]; ok {
		copied := map[string]any{}
		for key, value := range leaf {
			copied[key] = value
		}
		return copied
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		return object(t)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	}
	return map[string]any{}
}

func object(t reflect.Type) map[string]any {
	properties := map[string]any{}
	addFields(properties, t)
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

// addFields adds the JSON fields of a struct; one of its own hides one of the same name further in.
func addFields(properties map[string]any, t reflect.Type) {
	var inner []reflect.Type
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported() || engineKeys[name]:
		case field.Anonymous && name == "":
			inner = append(inner, field.Type)
		case name != "" && properties[name] == nil:
			properties[name] = schemaOf(field.Type)
		}
	}
	for _, embedded := range inner {
		addFields(properties, embedded)
	}
}

// Command returns `fleet schema`.
func Command(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of fleet.yaml, for editors",
		Example: `  fleet schema > fleet.schema.json
  # then, in the first line of fleet.yaml:
  # yaml-language-server: $schema=../fleet.schema.json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			data, err := json.MarshalIndent(Of(), "", "  ")
			if err != nil {
				return fmt.Errorf("print schema: %w", err)
			}
			_, err = fmt.Fprintf(s.Out, "%s\n", data)
			return err
		},
	}
}
