package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Whatever files a bundle has, the result is the same objects every time or an error for a person; and what
// is forced into a namespace is in it.
func FuzzObjects(f *testing.F) {
	f.Add(configMap, "metadata: {labels: {a: b}}\n", chartYAML, "kind: {{ .Chart.Name }}\napiVersion: v1\nmetadata: {name: x}\n", uint8(0))
	f.Add(crd, "- {op: remove, path: /spec}\n", "namePrefix: x-\nresources: [a.yaml]\n", "{{ toYaml .Values }}", uint8(1))
	f.Add("kind: List\napiVersion: v1\nitems: [{}]\n", "null\n", "resources: [a.yaml]\n", "{{ tpl .Values.a . }}", uint8(2))
	f.Add(configMap, "a: b\n", "dependencies: [{name: a}]\nname: a\nversion: 1\n", "x: {{ lookup \"v1\" \"Secret\" \"\" \"\" }}", uint8(7))
	f.Fuzz(func(t *testing.T, first, patch, description, template string, switches uint8) {
		if strings.Contains(template, "range") || strings.Contains(template, "until") || strings.Contains(template, "repeat") ||
			strings.Contains(template, "seq") || strings.Contains(template, "gen") || strings.Contains(template, "rand") ||
			strings.Contains(template, "now") || strings.Contains(template, "uuid") || strings.Contains(template, "date") {
			t.Skip("takes time by itself, or is random on purpose")
		}
		files := map[string]string{"a.yaml": first, "overlays/o/a_patch.yaml": patch, "templates/t.yaml": template}
		if switches&1 != 0 {
			files["Chart.yaml"] = description
		}
		if switches&2 != 0 {
			files["kustomization.yaml"] = description
		}
		in := bundle(files)
		in.Options.Helm = values(map[string]any{"a": first})
		if switches&4 != 0 {
			in.Options.TargetNamespace = "forced"
		}
		if switches&8 != 0 {
			in.Options.YAML = &fleet.YAMLOptions{Overlays: []string{"o"}}
		}
		objects, err := Objects(t.Context(), in, Capabilities{}, nil)
		if err != nil {
			if fault.ClassOf(err) != fault.Stalled {
				t.Errorf("error %v has class %s", err, fault.ClassOf(err))
			}
			return
		}
		for _, object := range objects {
			if switches&4 != 0 && object.GetNamespace() != "forced" {
				t.Errorf("%s %s is in namespace %q", object.GetKind(), object.GetName(), object.GetNamespace())
			}
		}
		again, err := Objects(t.Context(), in, Capabilities{}, nil)
		if diff := cmp.Diff(objects, again); err != nil || diff != "" {
			t.Errorf("rendered again (%v):\n%s", err, diff)
		}
	})
}
