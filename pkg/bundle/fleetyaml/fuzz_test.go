package fleetyaml

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Whatever the file holds, there is a File or a stalled error; and what was read, written and read again
// is the same.
func FuzzParse(f *testing.F) {
	seeds, err := filepath.Glob("../testdata/golden/*/repo/*/fleet.yaml")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, seed := range seeds {
		data, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("a: &a {b: *a}\nhelm: {<<: [*a, {c: d}]}\n---\n!!binary x\n"))
	f.Add([]byte("helm: {values: {x: !!float 1, y: !!int 2.5, !!str z: !foo bar, .inf: .nan, ? [a] : b}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, warnings, err := Parse(data, "fleet.yaml")
		for _, warning := range warnings {
			if warning.Message == "" || warning.Line < 0 {
				t.Errorf("warning %+v", warning)
			}
		}
		if err != nil {
			if fault.ClassOf(err) != fault.Stalled || file != nil || !strings.Contains(err.Error(), "fleet.yaml") {
				t.Errorf("got %v, %v, want a stalled error that names the file", file, err)
			}
			return
		}
		checkStable(t, file)
	})
}

// checkStable writes a file and reads it again.
func checkStable(t *testing.T, file *File) {
	t.Helper()
	first, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.JSONToYAML(first)
	if err != nil {
		return
	}
	again, _, err := Parse(text, "fleet.yaml")
	if err != nil {
		t.Fatalf("what was read cannot be read again: %v\n%s", err, text)
	}
	second, err := json.Marshal(again)
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(second) {
		t.Errorf("first\n%s\nthen\n%s", first, second)
	}
}
