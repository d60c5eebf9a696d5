package overlay

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/pkg/bundle/render/manifest"
)

const (
	deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  template:
    spec:
      containers:
      - {name: web, image: "web:1"}
      - {name: log, image: "log:1"}
`
	custom = "apiVersion: example.test/v1\nkind: Thing\nmetadata: {name: t}\nspec: {list: [a, b], keep: 1}\n"
	pair   = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: \"1\"}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {x: \"1\"}\n"
)

func configMap(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {x: \"" + value + "\"}\n"
}

func TestApply(t *testing.T) {
	for name, test := range map[string]struct {
		tree     map[string]string
		overlays []string
		// want holds the values at the paths "file object field…" afterwards.
		want      map[string]any
		wantFiles []string
		wantErr   string
	}{
		"no overlays": {
			tree:      map[string]string{"a.yaml": configMap("a", "1"), "overlays/x/a.yaml": configMap("a", "2")},
			wantFiles: []string{"a.yaml"},
			want:      map[string]any{"a.yaml 0 data x": "1"},
		},
		"replace and add": {
			tree: map[string]string{"p/a.yaml": configMap("a", "1"), "overlays/x/p/a.yaml": configMap("a", "2"),
				"overlays/x/n.yaml": configMap("n", "3"), "overlays/x/text.txt": "t"},
			overlays:  []string{"x"},
			wantFiles: []string{"n.yaml", "p/a.yaml", "text.txt"},
			want:      map[string]any{"p/a.yaml 0 data x": "2", "n.yaml 0 data x": "3"},
		},
		"later overlay wins": {
			tree:     map[string]string{"a.yaml": configMap("a", "1"), "overlays/x/a.yaml": configMap("a", "2"), "overlays/y/a.yaml": configMap("a", "3")},
			overlays: []string{"y", "x"},
			want:     map[string]any{"a.yaml 0 data x": "2"},
		},
		"replace, then patch, in one overlay": {
			tree: map[string]string{"a.yaml": configMap("a", "1"),
				"overlays/x/a.yaml":       configMap("a", "2") + "immutable: true\n",
				"overlays/x/a_patch.yaml": "data: {x: \"3\"}\n"},
			overlays: []string{"x"},
			want:     map[string]any{"a.yaml 0 data x": "3", "a.yaml 0 immutable": true},
		},
		"patch of what an earlier overlay added": {
			tree:     map[string]string{"overlays/x/a.yaml": configMap("a", "2"), "overlays/y/a_patch.yaml": "data: {other: \"3\"}\n"},
			overlays: []string{"x", "y"},
			want:     map[string]any{"a.yaml 0 data x": "2", "a.yaml 0 data other": "3"},
		},
		"strategic merge": {
			tree: map[string]string{"d.yaml": deployment,
				"overlays/x/d_patch.yaml": "spec: {replicas: 3, template: {spec: {containers: [{name: log, image: \"log:2\"}]}}}\n"},
			overlays: []string{"x"},
			want: map[string]any{"d.yaml 0 spec replicas": int64(3), "d.yaml 0 spec template spec containers": []any{
				map[string]any{"name": "web", "image": "web:1"}, map[string]any{"name": "log", "image": "log:2"}}},
		},
		"merge of an unknown kind": {
			tree:     map[string]string{"c.yaml": custom, "overlays/x/c_patch.yaml": "spec: {list: [c], keep: null}\n"},
			overlays: []string{"x"},
			want:     map[string]any{"c.yaml 0 spec": map[string]any{"list": []any{"c"}}},
		},
		"json patch": {
			tree:     map[string]string{"c.yaml": custom, "overlays/x/c_patch.yaml": "- {op: replace, path: /spec/keep, value: 2}\n- {op: add, path: /spec/list/-, value: c}\n"},
			overlays: []string{"x"},
			want:     map[string]any{"c.yaml 0 spec": map[string]any{"list": []any{"a", "b", "c"}, "keep": int64(2)}},
		},
		"json patch in json": {
			tree:     map[string]string{"c.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, "overlays/x/c_patch.json": `[{"op":"add","path":"/data","value":{"x":"1"}}]`},
			overlays: []string{"x"},
			want:     map[string]any{"c.json 0 data x": "1"},
		},
		"one of several objects": {
			tree:     map[string]string{"p.yaml": pair, "overlays/x/p_patch.yaml": "metadata: {name: b}\ndata: {x: \"2\"}\n"},
			overlays: []string{"x"},
			want:     map[string]any{"p.yaml 0 data x": "1", "p.yaml 1 data x": "2"},
		},
		"two patches in a file": {
			tree:     map[string]string{"p.yaml": pair, "overlays/x/p_patch.yaml": "metadata: {name: b}\ndata: {x: \"2\"}\n---\nmetadata: {name: a}\ndata: {x: \"3\"}\n"},
			overlays: []string{"x"},
			want:     map[string]any{"p.yaml 0 data x": "3", "p.yaml 1 data x": "2"},
		},
		"big numbers survive": {
			tree:     map[string]string{"c.yaml": "apiVersion: e.test/v1\nkind: T\nmetadata: {name: t}\nspec: {big: 9007199254740993}\n", "overlays/x/c_patch.yaml": "spec: {m: 1}\n"},
			overlays: []string{"x"},
			want:     map[string]any{"c.yaml 0 spec big": int64(9007199254740993)},
		},

		"unknown overlay": {
			tree: map[string]string{"a.yaml": custom}, overlays: []string{"typo"},
			wantErr: `yaml.overlays names "typo", but there is no file below overlays/typo/`,
		},
		"overlay outside": {
			tree: map[string]string{"a.yaml": custom, "overlays/x/a.yaml": custom}, overlays: []string{"../x"},
			wantErr: "there is no file below",
		},
		"nothing to patch": {
			tree: map[string]string{"overlays/x/a_patch.yaml": "a: b\n"}, overlays: []string{"x"},
			wantErr: "overlays/x/a_patch.yaml: there is no a.yaml to patch",
		},
		"json patch of several objects": {
			tree: map[string]string{"p.yaml": pair, "overlays/x/p_patch.yaml": "[]\n"}, overlays: []string{"x"},
			wantErr: "p.yaml holds 2 objects; a JSON patch needs a file with one",
		},
		"patch names no object": {
			tree: map[string]string{"p.yaml": pair, "overlays/x/p_patch.yaml": "kind: ConfigMap\nmetadata: {name: c}\n"}, overlays: []string{"x"},
			wantErr: "p.yaml has no ConfigMap c to patch",
		},
		"patch fits several": {
			tree: map[string]string{"p.yaml": pair, "overlays/x/p_patch.yaml": "data: {x: \"2\"}\n"}, overlays: []string{"x"},
			wantErr: "fits several objects",
		},
		"json patch of a missing path": {
			tree: map[string]string{"c.yaml": custom, "overlays/x/c_patch.yaml": "- {op: remove, path: /spec/nothing}\n"}, overlays: []string{"x"},
			wantErr: "overlays/x/c_patch.yaml: document 1 (line 1): patch Thing t of c.yaml",
		},
		"patch is a text": {
			tree: map[string]string{"c.yaml": custom, "overlays/x/c_patch.yaml": "hello\n"}, overlays: []string{"x"},
			wantErr: "a patch is an object or a list of operations",
		},
		"patch is no YAML": {
			tree: map[string]string{"c.yaml": custom, "overlays/x/c_patch.yaml": "a: b\n---\na: [\n"}, overlays: []string{"x"},
			wantErr: "document 2 (line 3): not YAML",
		},
		"base is a template": {
			tree: map[string]string{"templates/c.yaml": "a: {{ .x }}\n", "overlays/x/templates/c_patch.yaml": "a: b\n"}, overlays: []string{"x"},
			wantErr: "templates/c.yaml, document 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Apply(tree(test.tree), test.overlays)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if files := slices.Sorted(maps.Keys(result)); test.wantFiles != nil && !slices.Equal(files, test.wantFiles) {
				t.Errorf("files %v, want %v", files, test.wantFiles)
			}
			for at, want := range test.want {
				if diff := cmp.Diff(want, valueAt(t, result, at)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", at, diff)
				}
			}
		})
	}
}

func tree(files map[string]string) map[string][]byte {
	result := map[string][]byte{}
	for name, data := range files {
		result[name] = []byte(data)
	}
	return result
}

func valueAt(t *testing.T, tree map[string][]byte, at string) any {
	t.Helper()
	parts := strings.Fields(at)
	objects, err := manifest.Parse(parts[0], tree[parts[0]])
	if err != nil {
		t.Fatal(err)
	}
	var value any = objects[int(parts[1][0]-'0')].Object
	for _, key := range parts[2:] {
		value = value.(map[string]any)[key]
	}
	return value
}

// Patches are foreign input: whatever they hold, the result is a file of objects or an error.
func FuzzPatch(f *testing.F) {
	for _, patch := range []string{
		"spec: {replicas: 3}\n", "- {op: add, path: /a, value: 1}\n", "- {op: copy, from: /spec, path: /spec/a}\n",
		"$patch: delete\n", "spec: {$retainKeys: [a]}\n", "spec: {template: {spec: {containers: [{name: web, $patch: delete}]}}}\n",
		"metadata: null\n", "spec: {template: {spec: {$setElementOrder/containers: [{name: x}], containers: 3}}}\n",
	} {
		for _, base := range []string{deployment, custom, pair} {
			f.Add([]byte(base), []byte(patch))
		}
	}
	f.Fuzz(func(t *testing.T, base, patch []byte) {
		result, err := patchFile("f.yaml", base, patch)
		if err != nil {
			return
		}
		again, err := patchFile("f.yaml", base, patch)
		if err != nil || string(again) != string(result) {
			t.Errorf("the same patch gave\n%s\nand then\n%s (%v)", result, again, err)
		}
	})
}
