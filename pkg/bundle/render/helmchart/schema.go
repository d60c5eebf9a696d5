package helmchart

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
)

// builtInSchemas starts the ids of the drafts that the validator knows by itself.
const builtInSchemas = "json-schema.org/"

// localSchemas takes references that leave a values.schema.json out of it, in the chart and all below.
// Helm's validator would follow them over the network and into files of the machine it runs on; what
// they would check is not checked.
func localSchemas(parent *chart.Chart) {
	parent.Schema = localSchema(parent.Schema)
	for _, dependency := range parent.Dependencies() {
		localSchemas(dependency)
	}
}

// localSchema returns the schema itself when it has no such reference, or is not JSON, which the validator says.
func localSchema(schema []byte) []byte {
	if len(schema) == 0 {
		return schema
	}
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	var root any
	if decoder.Decode(&root) != nil {
		return schema
	}
	ids := map[string]bool{}
	visitSchemas(root, func(node map[string]any) {
		for _, key := range []string{"$id", "id"} {
			if id, ok := node[key].(string); ok {
				ids[strings.TrimSuffix(id, "#")] = true
			}
		}
	})
	changed := false
	visitSchemas(root, func(node map[string]any) {
		for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef", "$schema"} {
			if target, ok := node[key].(string); ok && !isLocal(target, ids) {
				delete(node, key)
				changed = true
			}
		}
	})
	if !changed {
		return schema
	}
	edited, err := json.Marshal(root)
	if err != nil {
		return schema
	}
	return edited
}

func visitSchemas(value any, visit func(node map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(value)
		for _, item := range value {
			visitSchemas(item, visit)
		}
	case []any:
		for _, item := range value {
			visitSchemas(item, visit)
		}
	}
}

// isLocal says whether a reference stays in the document: a fragment, an id of the document, or a draft.
func isLocal(target string, ids map[string]bool) bool {
	document, _, _ := strings.Cut(target, "#")
	if document == "" || ids[document] {
		return true
	}
	parsed, err := url.Parse(document)
	return err == nil && strings.HasPrefix(parsed.Host+parsed.Path, builtInSchemas)
}
