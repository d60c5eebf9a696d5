package index

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var indexes = map[string]string{
	"helm":      "apiVersion: v1\nentries:\n  api:\n  - name: api\n    version: 1.0.0\n    description: |\n      web:\n      - not this\n  web:\n  - name: web\n    urls:\n    - web-2.tgz\n    version: 2.0.0\n\n  # old\n  - version: 1.0.0\n  zed:\n  - version: 3.0.0\ngenerated: now\n",
	"indented":  "entries:\n    web:\n        - version: 2.0.0\n        - version: 1.0.0\n    zed:\n        - version: 3.0.0\n",
	"quoted":    "entries:\n  \"web\":\n  - version: 2.0.0\n  - version: 1.0.0\n",
	"last":      "generated: now\nentries:\n  api: []\n  web:\n  - version: 2.0.0\n  - version: 1.0.0",
	"flow":      "entries: {web: [{version: 2.0.0}, {version: 1.0.0}]}\n",
	"flow list": "entries:\n  web: [{version: 2.0.0}, {version: 1.0.0}]\n",
	"windows":   "entries:\r\n  web:\r\n  - version: 2.0.0\r\n  - version: 1.0.0\r\n",
	"json":      `{"entries":{"api":[],"web":[{"version":"2.0.0"},{"version":"1.0.0"}]}}`,
	"nothing":   "entries: {}\n",
	"another":   "entries:\n  webb:\n  - version: 2.0.0\n",
	"empty":     "",
}

func TestVersions(t *testing.T) {
	for name, text := range indexes {
		t.Run(name, func(t *testing.T) {
			var want []string
			if name != "nothing" && name != "another" && name != "empty" {
				want = []string{"2.0.0", "1.0.0"}
			}
			versions, err := Versions([]byte(text), "web")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, version := range versions {
				got = append(got, version.Version)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
		})
	}
}

// A large index costs the memory of one chart's lines.
func TestVersionsOfLargeIndex(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nentries:\n")
	for chart := range 300 {
		fmt.Fprintf(&text, "  chart-%d:\n", chart)
		for version := range 100 {
			fmt.Fprintf(&text, "  - apiVersion: v2\n    description: %s\n    name: chart-%d\n    urls:\n    - https://x.test/c.tgz\n    version: 1.%d.0\n", strings.Repeat("x", 400), chart, version)
		}
	}
	data := []byte(text.String())
	if len(data) <= maxSection {
		t.Fatal("the index is not large")
	}
	versions, err := Versions(data, "chart-271")
	if err != nil || len(versions) != 100 || versions[42].Version != "1.42.0" {
		t.Errorf("got %d versions, %v", len(versions), err)
	}
	if versions, err := Versions(data, "nope"); err != nil || versions != nil {
		t.Errorf("a chart that is not there: %v, %v", versions, err)
	}
}

// What the fast way finds is what the whole document says.
func FuzzVersions(f *testing.F) {
	for _, text := range indexes {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Versions(data, "web")
		if err != nil || got == nil {
			return
		}
		var whole struct {
			Entries map[string][]Version `json:"entries"`
		}
		if yaml.Unmarshal(data, &whole) != nil {
			return
		}
		want := whole.Entries["web"]
		left, _ := json.Marshal(want)
		right, _ := json.Marshal(got)
		if string(left) != string(right) {
			t.Errorf("got %s, want %s", right, left)
		}
	})
}
