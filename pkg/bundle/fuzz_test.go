package bundle

import (
	"encoding/json"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Whatever a repository holds, Read gives bundles or says who must act, and gives the same again.
func FuzzRead(f *testing.F) {
	f.Add("name: x\nhelm: {valuesFiles: [v.yaml], chart: ../c}\n", "*.txt\nsub/\n", "resources: [../base, a.yaml]\n", "a: 1\n", "../base", "app", "*")
	f.Add("kustomize: {dir: sub}\ntargetCustomizations: [{kustomize: {dir: ..}, helm: {valuesFiles: [../../x]}}]", "/a\n!b", "bases: [https://x.test/y]", "- a", "../../out", "a*/..", "[")
	f.Fuzz(func(t *testing.T, spec, ignore, kustomization, values, link, first, second string) {
		file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o644} }
		tree := fstest.MapFS{
			"app/fleet.yaml": file(spec), "app/.fleetignore": file(ignore), "app/kustomization.yaml": file(kustomization), "app/v.yaml": file(values),
			"app/a.yaml": file(manifest), "app/sub/kustomization.yaml": file(kustomization), "app/sub/b.yaml": file(values),
			"app/link": {Data: []byte(link), Mode: fs.ModeSymlink | 0o777}, "base/kustomization.yaml": file("resources: [c.yaml]"), "base/c.yaml": file(manifest),
			"c/Chart.yaml": file(values), "other/o.yaml": file(manifest),
		}
		req := Request{Name: "r", Namespace: "ns", Paths: []string{first, second, "other"}}
		one, err := Read(t.Context(), tree, req, nil)
		if err != nil && fault.ClassOf(err) != fault.Stalled {
			t.Fatalf("a mistake in the repository is not for a person: %v", err)
		}
		two, _ := Read(t.Context(), tree, req, nil)
		left, leftErr := json.Marshal(one)
		right, rightErr := json.Marshal(two)
		if leftErr != nil || rightErr != nil || string(left) != string(right) {
			t.Errorf("first\n%s\nthen\n%s\n%v %v", left, right, leftErr, rightErr)
		}
	})
}
