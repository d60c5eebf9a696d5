package helmchart

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

func TestSchemaWithoutOutsideReferencesIsKept(t *testing.T) {
	for name, text := range map[string]string{
		"a draft":        `{ "$schema": "http://json-schema.org/draft-07/schema#" }`,
		"inside":         `{ "properties": {"a": {"$ref": "#/x"}} }`,
		"property named": `{ "properties": {"$ref": {"type": "string"}} }`,
		"no JSON":        `{`,
		"none":           ``,
	} {
		if got := string(localSchema([]byte(text))); got != text {
			t.Errorf("%s: schema became %s", name, got)
		}
	}
}

// Helm's loader keeps subcharts in a map, and the order of definitions and dependencies would follow it.
func TestLoadIsDeterministic(t *testing.T) {
	for range 20 {
		loaded, err := Load(files())
		if err != nil {
			t.Fatal(err)
		}
		if got := order(loaded); got != "a b c d" {
			t.Fatalf("dependencies %s, want a b c d", got)
		}
	}
}

func files() []*loader.BufferedFile {
	result := []*loader.BufferedFile{{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: parent\nversion: 1.0.0\n")}}
	for _, name := range []string{"d", "b", "a", "c"} {
		result = append(result, &loader.BufferedFile{
			Name: "charts/" + name + "/Chart.yaml", Data: []byte("apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n"),
		})
	}
	return append(result, &loader.BufferedFile{Name: "templates/a.yaml", Data: []byte("kind: A\ntext: " + strings.Repeat("x", 100) + "\n")})
}

func order(parent *chart.Chart) string {
	var names []string
	for _, dependency := range parent.Dependencies() {
		names = append(names, dependency.Name())
	}
	return strings.Join(names, " ")
}

func TestTemplateIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		limit   int
		wantErr string
	}{
		"fits":     {1 << 20, ""},
		"too much": {50, "the templates render to more than"},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := Load(files())
			if err != nil {
				t.Fatal(err)
			}
			output, err := Template(loaded, map[string]any{}, chartutil.ReleaseOptions{}, Cluster{Capabilities: chartutil.DefaultCapabilities}, Limits{Bytes: test.limit})
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil || !strings.HasPrefix(string(output.Manifests), "---\n# Source: parent/templates/a.yaml\nkind: A\n") {
				t.Errorf("output %v, %v", output, err)
			}
		})
	}
}
