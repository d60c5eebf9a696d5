package kustomization_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/pkg/bundle/kustomization"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func files(contents map[string]string) *tree.Tree {
	out := fstest.MapFS{}
	for name, text := range contents {
		out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return tree.New(out)
}

// Every field that names files is followed.
func TestClosureFields(t *testing.T) {
	for field, text := range map[string]string{
		"resources":             "resources: [../x]",
		"bases":                 "bases: [../x]",
		"components":            "components: [../x]",
		"generators":            "generators: [../x]",
		"transformers":          "transformers: [../x]",
		"validators":            "validators: [../x]",
		"crds":                  "crds: [../x/f]",
		"configurations":        "configurations: [../x/f]",
		"openapi":               "openapi: {path: ../x/f}",
		"patchesStrategicMerge": "patchesStrategicMerge: [../x/f]",
		"patchesJson6902":       "patchesJson6902: [{path: ../x/f, target: {kind: A, name: b, version: v1}}]",
		"patches":               "patches: [{path: ../x/f}]",
		"replacements":          "replacements: [{path: ../x/f}]",
		"configMap files":       "configMapGenerator: [{name: a, files: [../x/f]}]",
		"configMap named file":  "configMapGenerator: [{name: a, files: [key=../x/f]}]",
		"configMap envs":        "configMapGenerator: [{name: a, envs: [../x/f]}]",
		"configMap env":         "configMapGenerator: [{name: a, env: ../x/f}]",
		"secret files":          "secretGenerator: [{name: a, files: [../x/f]}]",
	} {
		t.Run(field, func(t *testing.T) {
			tree := files(map[string]string{"app/kustomization.yaml": text, "x/kustomization.yaml": "resources: [f]", "x/f": "", "x/unused": ""})
			got, err := kustomization.NewClosures(tree).Of("app")
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"app/kustomization.yaml", "x/f"}
			if !strings.Contains(text, "x/f") {
				want = append(want, "x/kustomization.yaml")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClosureIgnores(t *testing.T) {
	tree := files(map[string]string{
		"app/kustomization.yaml": "resources: [fleet-manifests.yaml, ../app2, ../app3]\npatchesStrategicMerge: ['{a: b}', \"a: b\\nc: d\"]\npatches: [{patch: 'a: b'}]\ngenerators: [\"kind: X\\nname: y\"]\nconfigMapGenerator: [{name: a, literals: [x=../y]}]\nunknownField: [z]\n",
		"app2/Kustomization":     "resources: [../app3]\n",
		"app3/Kustomization":     "namePrefix: x-\n",
	})
	got, err := kustomization.NewClosures(tree).Of("app/.")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"app/kustomization.yaml", "app2/Kustomization", "app3/Kustomization"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestClosureRefuses(t *testing.T) {
	for name, test := range map[string]struct{ text, wantReason, want string }{
		"URL":                {"resources: ['https://u:secret@h.test/x.yaml']", kustomization.ReasonRemote, "h.test"},
		"scp":                {"bases: ['git@h.test:x/y']", kustomization.ReasonRemote, "git@h.test:x/y"},
		"reference":          {"components: ['h.test/x/y?ref=main']", kustomization.ReasonRemote, "ref=main"},
		"github":             {"resources: ['github.com/x/y']", kustomization.ReasonRemote, "github.com/x/y"},
		"double slash":       {"resources: ['h.test/x/y//z']", kustomization.ReasonRemote, "h.test/x/y//z"},
		"remote patch":       {"patches: [{path: 'https://h.test/p.yaml'}]", kustomization.ReasonRemote, "h.test"},
		"outside":            {"resources: [../../x]", kustomization.ReasonInvalid, "outside the repository"},
		"absolute":           {"resources: [/etc/passwd]", kustomization.ReasonInvalid, "outside the repository"},
		"missing":            {"resources: [x.yaml]", kustomization.ReasonInvalid, "x.yaml, which does not exist"},
		"folder for a file":  {"crds: [../x]", kustomization.ReasonInvalid, "../x, which does not exist"},
		"folder without one": {"resources: [../x]", kustomization.ReasonInvalid, "x holds no kustomization.yaml"},
		"cycle":              {"resources: [../back]", kustomization.ReasonInvalid, "back/kustomization.yaml refers to app, which refers back to it"},
		"itself":             {"resources: [.]", kustomization.ReasonInvalid, "app/kustomization.yaml refers to app, which refers back to it"},
		"no YAML":            {"resources: [", kustomization.ReasonInvalid, "app/kustomization.yaml does not parse"},
		"wrong type":         {"resources: {a: b}", kustomization.ReasonInvalid, "app/kustomization.yaml does not parse"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kustomization.NewClosures(files(map[string]string{"app/kustomization.yaml": test.text, "back/kustomization.yaml": "resources: [../app]", "x/f": ""})).Of("app")
			if fault.ReasonOf(err) != test.wantReason || fault.ClassOf(err) != fault.Stalled {
				t.Fatalf("got %v, want a stalled %s", err, test.wantReason)
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "/kustomization.yaml") || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q does not say %q and the file, or holds a secret", err, test.want)
			}
		})
	}
}
