package columns

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func objects() *unstructured.UnstructuredList {
	return &unstructured.UnstructuredList{
		Object: map[string]any{"apiVersion": "v1", "kind": "List"},
		Items: []unstructured.Unstructured{
			{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"paths": []any{"x", "y"}}}},
			{Object: map[string]any{"metadata": map[string]any{"name": "b"}}},
		},
	}
}

func TestPrint(t *testing.T) {
	file := filepath.Join(t.TempDir(), "columns")
	if err := os.WriteFile(file, []byte("NAME PATH\nmetadata.name {.spec.paths[0]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		format, template string
		noHeaders        bool
		want             string
	}{
		"columns":          {"custom-columns=NAME:.metadata.name,PATHS:{.spec.paths[*]}", "", false, "NAME   PATHS\na      x,y\nb      <none>\n"},
		"without headings": {"custom-columns=NAME:metadata.name", "", true, "a\nb\n"},
		"file":             {"custom-columns-file=" + file, "", false, "NAME   PATH\na      x\nb      <none>\n"},
		"given apart":      {"custom-columns", "N:{metadata.name}", false, "N\na\nb\n"},
	} {
		printer, known, err := Parse(test.format, test.template, test.noHeaders)
		if err != nil || !known {
			t.Errorf("%s: %v, %v", name, known, err)
			continue
		}
		var out strings.Builder
		if err := printer.PrintObj(objects(), &out); err != nil || out.String() != test.want {
			t.Errorf("%s: got %q, %v, want %q", name, out.String(), err, test.want)
		}
		// A watch goes on without headings.
		out.Reset()
		if err := printer.PrintObj(&objects().Items[0], &out); err != nil || !strings.HasPrefix(out.String(), "a") {
			t.Errorf("%s: then %q, %v", name, out.String(), err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, format := range []string{"custom-columns", "custom-columns=", "custom-columns=NAME", "custom-columns=A:{.a", "custom-columns=A:.a[", "custom-columns-file=/nowhere", "custom-columns-file=/dev/null"} {
		if _, known, err := Parse(format, "", false); err == nil || !known {
			t.Errorf("%s: %v, %v, want an error", format, known, err)
		}
	}
	if _, known, err := Parse("wide", "", false); known || err != nil {
		t.Errorf("wide: %v, %v", known, err)
	}
}
