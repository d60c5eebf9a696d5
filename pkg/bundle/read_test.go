package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/charts"
	"github.com/fairlead-dev/fairlead/pkg/bundle/kustomization"
	"github.com/fairlead-dev/fairlead/pkg/bundle/layout"
	"github.com/fairlead-dev/fairlead/pkg/bundle/resources"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"

// repo makes a tree of files; "-> x" is a link to x, and an empty content a small manifest.
func repo(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		target, isLink := strings.CutPrefix(text, "-> ")
		switch {
		case isLink:
			out[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
		case text == "":
			out[name] = &fstest.MapFile{Data: []byte(manifest), Mode: 0o644}
		default:
			out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
		}
	}
	return out
}

// contents returns the names of a bundle's files, in order.
func contents(b Bundle) []string {
	var out []string
	for _, resource := range b.Object.Spec.Resources {
		out = append(out, resource.Name)
	}
	return out
}

// readFiles are trees where upstream is wrong or says nothing, with what is in each bundle.
var readFiles = map[string]struct {
	files map[string]string
	req   Request
	want  map[string][]string
}{
	"a nested fleet.yaml cuts its folder out": {
		files: map[string]string{"app/fleet.yaml": "{}", "app/a.yaml": "", "app/sub/b.yaml": "", "app/child/fleet.yaml": "{}", "app/child/c.yaml": "", "app/child/deep/d.yaml": ""},
		want:  map[string][]string{"r-app": {"a.yaml", "sub/b.yaml"}, "r-app-child": {"c.yaml", "deep/d.yaml"}},
	},
	"fleet.yml is read and not shipped": {
		files: map[string]string{"app/fleet.yml": "name: other", "app/a.yaml": ""},
		want:  map[string][]string{"other": {"a.yaml"}},
	},
	"a path without fleet.yaml leaves children with one out": {
		files: map[string]string{"a.yaml": "", "one/b.yaml": "", "two/fleet.yaml": "{}", "two/c.yaml": ""},
		want:  map[string][]string{"r": {"a.yaml", "one/b.yaml"}, "r-two": {"c.yaml"}},
	},
	"YAML only in a child with fleet.yaml makes no bundle of the path": {
		files: map[string]string{"notes.txt": "x", "two/fleet.yaml": "{}", "two/c.yaml": ""},
		want:  map[string][]string{"r-two": {"c.yaml"}},
	},
	"hidden files do not count": {
		files: map[string]string{"app/.hidden.yaml": "", "app/.x/b.yaml": "", "app/c.yaml": ""},
		want:  map[string][]string{"r": {"app/c.yaml"}},
	},
	"values files are left out by exact path": {
		files: map[string]string{
			"app/fleet.yaml": "helm: {valuesFiles: [values/deployment.yaml]}", "app/Chart.yaml": "name: x\nversion: 1.0.0",
			"app/values/deployment.yaml": "a: 1", "app/deployment.yaml": "", "app/templates/deployment.yaml": "",
		},
		want: map[string][]string{"r-app": {"Chart.yaml", "deployment.yaml", "templates/deployment.yaml"}},
	},
	"files of options of one base are in none of its bundles": {
		files: map[string]string{"app/fleet.yaml": "{}", "app/dev.yaml": "{}", "app/conf/prod.yaml": "{}", "app/a.yaml": "", "app/conf/b.yaml": ""},
		req:   Request{Bundles: []fleet.BundlePath{{Base: "app", Options: "dev.yaml"}, {Base: "/app/", Options: "conf/prod.yaml"}}},
		want:  map[string][]string{"r-app-dev": {"a.yaml", "conf/b.yaml"}, "r-app-conf-prod": {"a.yaml", "conf/b.yaml"}},
	},
	"one file of options for all folders is not in the names": {
		files: map[string]string{"app/dev.yaml": "{}", "app/a.yaml": "", "web/dev.yaml": "name: own", "web/b.yaml": ""},
		req:   Request{Bundles: []fleet.BundlePath{{Base: "app", Options: "dev.yaml"}, {Base: "web", Options: "dev.yaml"}}, NameByFolder: true},
		want:  map[string][]string{"r-app": {"a.yaml"}, "own": {"b.yaml"}},
	},
	"links inside the repository are followed": {
		files: map[string]string{"app/a.yaml": "-> ../shared/x.yaml", "app/dir": "-> ../shared", "shared/x.yaml": "", "shared/sub/y.yaml": "", "other": "-> app"},
		req:   Request{Paths: []string{"app"}},
		want:  map[string][]string{"r-app": {"a.yaml", "dir/sub/y.yaml", "dir/x.yaml"}},
	},
	"a path may be a link": {
		files: map[string]string{"app/a.yaml": "", "other": "-> app"},
		req:   Request{Paths: []string{"oth*"}},
		want:  map[string][]string{"r-other": {"a.yaml"}},
	},
	"a folder that two paths lead to is one bundle": {
		files: map[string]string{"app/fleet.yaml": "{}", "app/a.yaml": ""},
		req:   Request{Paths: []string{"app", "*", "/app/"}},
		want:  map[string][]string{"r-app": {"a.yaml"}},
	},
	"kustomize reaches out of the folder": {
		files: map[string]string{
			"apps/dev/kustomization.yaml": "resources: [../base, own.yaml]\npatches: [{path: ../../patches/p.yaml}]\nconfigMapGenerator: [{name: c, files: [key=../../files/x.txt], envs: [.env]}]",
			"apps/dev/own.yaml":           "", "apps/dev/.env": "A=b", "apps/base/Kustomization": "resources: [cm.yaml]\ncomponents: [../../comp]", "apps/base/cm.yaml": "", "apps/base/README.md": "x",
			"patches/p.yaml": "", "files/x.txt": "x", "comp/kustomization.yml": "crds: [crd.json]", "comp/crd.json": "{}", "unrelated/b.yaml": "",
		},
		req: Request{Paths: []string{"apps/dev"}},
		want: map[string][]string{"r-apps-dev": {
			".kustomize/apps/base/Kustomization", ".kustomize/apps/base/cm.yaml", ".kustomize/apps/dev/.env", ".kustomize/apps/dev/kustomization.yaml", ".kustomize/apps/dev/own.yaml",
			".kustomize/comp/crd.json", ".kustomize/comp/kustomization.yml", ".kustomize/files/x.txt", ".kustomize/fleet.yaml", ".kustomize/patches/p.yaml",
			"kustomization.yaml", "own.yaml",
		}},
	},
	"kustomize inside the folder changes nothing": {
		files: map[string]string{"app/fleet.yaml": "kustomize: {dir: o}", "app/o/kustomization.yaml": "resources: [../base]", "app/base/kustomization.yaml": "resources: [a.yaml]", "app/base/a.yaml": ""},
		want:  map[string][]string{"r-app": {"base/a.yaml", "base/kustomization.yaml", "o/kustomization.yaml"}},
	},
	"a local chart above the folder comes along": {
		files: map[string]string{"app/fleet.yaml": "helm: {chart: ../charts/web}", "charts/web/Chart.yaml": "name: web\nversion: 1.0.0", "charts/web/templates/a.yaml": ""},
		want: map[string][]string{
			"r-app": {charts.Folder(&fleet.HelmOptions{Chart: "../charts/web"}) + "/web/Chart.yaml", charts.Folder(&fleet.HelmOptions{Chart: "../charts/web"}) + "/web/templates/a.yaml"},
			"r":     {"charts/web/Chart.yaml", "charts/web/templates/a.yaml"},
		},
	},
	"patterns of .fleetignore with a path": {
		files: map[string]string{"app/.fleetignore": "sub/x.yaml\n/y.yaml\nlogs/\n", "app/sub/x.yaml": "", "app/x.yaml": "", "app/y.yaml": "", "app/sub/y.yaml": "", "app/logs/l.yaml": "", "app/sub/logs/l.yaml": ""},
		req:   Request{Paths: []string{"app"}},
		want:  map[string][]string{"r-app": {"sub/y.yaml", "x.yaml"}},
	},
}

func TestReadFiles(t *testing.T) {
	for name, test := range readFiles {
		t.Run(name, func(t *testing.T) {
			test.req.Name = "r"
			result, err := Read(t.Context(), repo(test.files), test.req, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for _, b := range result.Bundles {
				got[b.Object.Name] = contents(b)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// What is wrong with one bundle is said, and the other one is made all the same.
func TestReadFailures(t *testing.T) {
	for name, test := range map[string]struct {
		files      map[string]string
		req        Request
		wantReason string
		wantText   []string
		// wantMade is "good" unless the failure takes everything down.
		wantMade string
	}{
		"fleet.yaml does not parse":       {files: map[string]string{"app/fleet.yaml": "a: [\n", "app/a.yaml": ""}, wantReason: "InvalidFleetYAML", wantText: []string{"app/fleet.yaml", "line 1"}},
		"wrong type":                      {files: map[string]string{"app/fleet.yaml": "\n\nhelm: 3\n"}, wantReason: "InvalidFleetYAML", wantText: []string{"app/fleet.yaml:3:", "mapping"}},
		"missing values file":             {files: map[string]string{"app/fleet.yaml": "helm: {valuesFiles: [no.yaml]}", "app/a.yaml": ""}, wantReason: ReasonValuesFile, wantText: []string{"app/no.yaml"}},
		"missing values file of a target": {files: map[string]string{"app/fleet.yaml": "targetCustomizations: [{name: x, helm: {valuesFiles: [v/no.yaml]}}]", "app/a.yaml": ""}, wantReason: ReasonValuesFile, wantText: []string{"v/no.yaml"}},
		"values file outside":             {files: map[string]string{"app/fleet.yaml": "helm: {valuesFiles: [../../etc/passwd]}", "app/a.yaml": ""}, wantReason: ReasonValuesFile, wantText: []string{"outside the repository"}},
		"values file no mapping":          {files: map[string]string{"app/fleet.yaml": "helm: {valuesFiles: [v.yaml]}", "app/v.yaml": "- a"}, wantReason: ReasonValuesFile, wantText: []string{"app/v.yaml: want a mapping of values, got a list"}},
		"values file with a template":     {files: map[string]string{"app/fleet.yaml": "helm: {valuesFiles: [v.yaml]}", "app/v.yaml": "a: {{ .Values.b }}"}, wantReason: ReasonValuesFile, wantText: []string{"app/v.yaml: not YAML: a mapping is used as a key; quote texts"}},
		"values file that is no YAML":     {files: map[string]string{"app/fleet.yaml": "helm: {valuesFiles: [v.yaml]}", "app/v.yaml": "a: [1"}, wantReason: ReasonValuesFile, wantText: []string{"app/v.yaml: not YAML: line 1"}},
		"missing dependency":              {files: map[string]string{"app/fleet.yaml": "{}", "app/Chart.yaml": "name: x\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.0.0}]"}, wantReason: charts.ReasonUnavailable, wantText: []string{"the chart in app depends on sub, which is not in its charts folder"}},
		"missing dependency further in":   {files: map[string]string{"app/fleet.yaml": "{}", "app/Chart.yaml": "name: x\nversion: 1.0.0\ndependencies: [{name: lib, repository: 'file://lib'}]", "app/lib/Chart.yaml": "name: lib\nversion: 1.0.0\ndependencies: [{name: sub}]"}, wantReason: charts.ReasonUnavailable, wantText: []string{"the chart in app/lib depends on sub"}},
		"link out of the repository":      {files: map[string]string{"app/a.yaml": "-> ../../etc/passwd", "app/fleet.yaml": "{}"}, wantReason: tree.ReasonLeaves, wantText: []string{"in app: app/a.yaml: the link app/a.yaml leads out of the repository"}},
		"absolute link":                   {files: map[string]string{"app/a.yaml": "-> /etc/passwd", "app/fleet.yaml": "{}"}, wantReason: tree.ReasonLeaves, wantText: []string{"/etc/passwd"}},
		"link to nothing":                 {files: map[string]string{"app/a.yaml": "-> b.yaml", "app/fleet.yaml": "{}"}, wantReason: tree.ReasonBrokenLink, wantText: []string{"app/a.yaml"}},
		"fleet.yaml is a link to nothing": {files: map[string]string{"app/fleet.yaml": "-> nope", "app/a.yaml": ""}, wantReason: tree.ReasonBrokenLink, wantText: []string{"app/fleet.yaml"}},
		"links in circles":                {files: map[string]string{"app/a": "-> b", "app/b": "-> a", "app/fleet.yaml": "{}"}, wantReason: tree.ReasonBrokenLink, wantText: []string{"circles"}},
		"folder links to itself":          {files: map[string]string{"app/a": "-> .", "app/fleet.yaml": "{}", "app/c.yaml": ""}, wantReason: tree.ReasonBrokenLink, wantText: []string{"circles"}},
		"two bundles of one name":         {files: map[string]string{"app/fleet.yaml": "name: same", "app/a.yaml": "", "zwei/fleet.yaml": "name: same", "zwei/b.yaml": ""}, wantReason: ReasonDuplicateName, wantText: []string{"app/fleet.yaml and zwei/fleet.yaml", "same"}},
		"file too large":                  {files: map[string]string{"app/fleet.yaml": "{}", "app/sub/big.bin": strings.Repeat("x", tree.MaxFile+1)}, wantReason: tree.ReasonTooLarge, wantText: []string{"app/sub/big.bin", "25 MiB", "24 MiB"}},
		"a file of 30 MiB":                {files: map[string]string{"app/fleet.yaml": "{}", "app/sub/big.bin": strings.Repeat("x", 30<<20)}, wantReason: tree.ReasonTooLarge, wantText: []string{"app/sub/big.bin", "30 MiB", "24 MiB"}},
		"very large values":               {files: map[string]string{"app/fleet.yaml": "helm: {chart: c, values: {a: " + strings.Repeat("x", maxValues) + "}}", "app/c/Chart.yaml": "name: c\nversion: 1.0.0\n"}, wantReason: resources.ReasonTooLarge, wantText: []string{"Helm values", "330 KiB"}},
		"base out of the repository":      {files: map[string]string{"app/fleet.yaml": "{}", "app/kustomization.yaml": "resources: [../../base]"}, wantReason: kustomization.ReasonInvalid, wantText: []string{"app/kustomization.yaml", "../../base", "outside"}},
		"remote base":                     {files: map[string]string{"app/fleet.yaml": "{}", "app/kustomization.yaml": "resources: ['https://user:secret@example.test/x//y?ref=main']"}, wantReason: kustomization.ReasonRemote, wantText: []string{"app/kustomization.yaml", "example.test"}},
		"remote base as a path":           {files: map[string]string{"app/fleet.yaml": "{}", "app/kustomization.yaml": "resources: ['github.com/o/r//x']"}, wantReason: kustomization.ReasonRemote},
		"missing base":                    {files: map[string]string{"app/fleet.yaml": "{}", "app/kustomization.yaml": "resources: [nope]"}, wantReason: kustomization.ReasonInvalid, wantText: []string{"nope", "does not exist"}},
		"kustomize.dir without a file":    {files: map[string]string{"app/fleet.yaml": "kustomize: {dir: o}", "app/o/x.yaml": ""}, wantReason: kustomization.ReasonInvalid, wantText: []string{"app/fleet.yaml", "kustomize.dir o"}},
		"chart that is nowhere":           {files: map[string]string{"app/fleet.yaml": "helm: {chart: web}", "app/x.yaml": ""}, wantReason: charts.ReasonUnavailable, wantText: []string{"helm.chart web", "helm.repo"}},
		"chart without a source":          {files: map[string]string{"app/fleet.yaml": "helm: {chart: web, repo: 'https://example.test'}"}, wantReason: charts.ReasonUnavailable, wantText: []string{"https://example.test"}},
		"image scans switched off":        {files: map[string]string{"app/fleet.yaml": "imageScans: [{tagName: a, image: b}]", "app/x.yaml": ""}, wantReason: ReasonImageScans},
		"two customizations of one name":  {files: map[string]string{"app/fleet.yaml": "targetCustomizations: [{name: x, helm: {values: {a: 1}}}, {name: x, helm: {values: {a: 2}}}]", "app/x.yaml": ""}, wantReason: ReasonDuplicateName, wantText: []string{`"x"`}},
		"name that is no key":             {files: map[string]string{"app/fleet.yaml": "targetCustomizations: [{name: 'EU West', helm: {values: {a: 1}}}]", "app/x.yaml": ""}, wantReason: ReasonValuesFile, wantText: []string{"EU West"}},
		"missing options":                 {files: map[string]string{"good/fleet.yaml": "{}"}, req: Request{Bundles: []fleet.BundlePath{{Base: "app", Options: "no.yaml"}, {Base: "good"}}}, wantReason: layout.ReasonInvalidPath, wantText: []string{"app/no.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			test.files["good/fleet.yaml"], test.files["good/cm.yaml"] = "{}", ""
			test.req.Name = "r"
			result, err := Read(t.Context(), repo(test.files), test.req, nil)
			if result == nil {
				t.Fatalf("no result: %v", err)
			}
			if got := fault.ClassOf(err); got != fault.Stalled {
				t.Errorf("class %q, want Stalled: %v", got, err)
			}
			if got := fault.ReasonOf(err); got != test.wantReason {
				t.Errorf("reason %q, want %q: %v", got, test.wantReason, err)
			}
			for _, want := range test.wantText {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not say %q", err, want)
				}
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("error holds a secret: %v", err)
			}
			if len(result.Bundles) != 1 || result.Bundles[0].Object.Name != "r-good" {
				t.Errorf("other bundles: %v, want r-good", result.Bundles)
			}
			if result.Complete() {
				t.Error("the result counts as complete")
			}
		})
	}
}

func TestReadUnmatchedPaths(t *testing.T) {
	files := repo(map[string]string{"app/a.yaml": "", "docs/readme.txt": "x"})
	result, err := Read(t.Context(), files, Request{Name: "r", Paths: []string{"app", "nope", "docs", "x/*", "app/a.yaml/b"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"nope", "docs", "x/*", "app/a.yaml/b"}
	if diff := cmp.Diff(want, result.UnmatchedPaths); diff != "" {
		t.Errorf("unmatched (-want +got):\n%s", diff)
	}
	if len(result.Warnings) != len(want) || result.Complete() || len(result.Bundles) != 1 {
		t.Errorf("warnings %v, complete %v, %d bundles", result.Warnings, result.Complete(), len(result.Bundles))
	}
	for name, req := range map[string]Request{
		"nothing there":   {Name: "r", Paths: []string{"nope"}},
		"out of the tree": {Name: "r", Paths: []string{"app", "../x"}},
		"bad pattern":     {Name: "r", Paths: []string{"app["}},
	} {
		if result, err := Read(t.Context(), files, req, nil); result != nil || fault.ClassOf(err) != fault.Stalled {
			t.Errorf("%s: got %v, %v, want no result and a Stalled error", name, result, err)
		}
	}
	// A folder that is listed and has become empty is still wanted.
	files = repo(map[string]string{"app/a.yaml": "", "web/fleet.yaml": "{}", "db/.keep": "x"})
	result, err = Read(t.Context(), files, Request{Name: "r", Bundles: []fleet.BundlePath{{Base: "app"}, {Base: "web"}, {Base: "db"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"web", "db"}, result.UnmatchedPaths); diff != "" || result.Complete() || len(result.Bundles) != 1 {
		t.Errorf("listed folders without files, unmatched (-want +got):\n%s", diff)
	}
	for name, files := range map[string]map[string]string{
		"only fleet.yaml":    {"app/fleet.yaml": "{}"},
		"everything ignored": {"app/.fleetignore": "*", "app/fleet.yaml": "{}", "app/a.yaml": ""},
	} {
		_, err := Read(t.Context(), repo(files), Request{Name: "r"}, nil)
		if fault.ReasonOf(err) != ReasonNoBundles || !strings.Contains(err.Error(), "there are no files to deploy in app, or .fleetignore") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(t.Context(), fstest.MapFS{}, Request{Name: "r"}, nil); fault.ReasonOf(err) != ReasonNoBundles {
		t.Errorf("empty tree: %v, want %s", err, ReasonNoBundles)
	}
}

// webFiles is a bundle that uses most of what fleet.yaml has.
var webFiles = map[string]string{
	"app/Chart.yaml":     "name: x\nversion: 1.0.0",
	"app/a.yaml":         "list: [1]\nmap: {p: 1, q: 1}\nkeep: null\nversion: 1.10\n",
	"app/sub/b.yaml":     "list: [2]\nmap: {q: 2}\n",
	"shared/values.yaml": "shared: true\n",
	"app/fleet.yaml": `
name: web
labels: {team: a, fleet.cattle.io/repo-name: evil, management.cattle.io/x: y}
annotations: {note: "1"}
overrideTargets: []
helm:
  version: 1.10
  valuesFiles: [a.yaml, sub/b.yaml, ../shared/values.yaml]
  values: {list: [0], map: {p: 0, z: 0}, on: yes}
targetCustomizations:
- clusterSelector: {matchLabels: {live: yes, zone: 007}}
  helm: {values: {a: 1}}
- name: other
  clusterName: o
`}

func readWeb(t *testing.T) (Bundle, []Warning) {
	t.Helper()
	req := Request{
		Name: "r", Namespace: "ns", Commit: "abc", Paths: []string{"app"},
		Labels: map[string]string{"team": "z", "fleet.cattle.io/created-by-user-id": "u"},
	}
	result, err := Read(t.Context(), repo(webFiles), req, nil)
	if err != nil || len(result.Bundles) != 1 {
		t.Fatalf("got %v, %v, want one bundle", result, err)
	}
	return result.Bundles[0], result.Warnings
}

func TestReadMetadata(t *testing.T) {
	bundle, warnings := readWeb(t)
	want := map[string]string{"team": "a", "fleet.cattle.io/created-by-user-id": "u", fleet.RepoLabel: "r", fleet.CommitLabel: "abc"}
	if diff := cmp.Diff(want, bundle.Object.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if bundle.Object.Name != "web" || bundle.Object.Namespace != "ns" || bundle.Object.Annotations["note"] != "1" {
		t.Errorf("got %s/%s with annotations %v", bundle.Object.Namespace, bundle.Object.Name, bundle.Object.Annotations)
	}
	var messages []string
	for _, warning := range warnings {
		messages = append(messages, warning.String())
	}
	for _, want := range []string{`app/fleet.yaml:3:19: labels: "fleet.cattle.io/repo-name"`, `"management.cattle.io/x"`, "app/fleet.yaml:5:1: an empty overrideTargets"} {
		if !strings.Contains(strings.Join(messages, "\n"), want) {
			t.Errorf("warnings %q do not say %q", messages, want)
		}
	}
}

func TestReadValues(t *testing.T) {
	bundle, _ := readWeb(t)
	want := map[string]string{
		"values.yaml": `{"keep":null,"list":[2],"map":{"p":1,"q":2,"z":0},"shared":true,"true":true,"version":1.1}`,
		"target000":   `{"a":1}`,
	}
	got := map[string]string{}
	for key, data := range bundle.Values {
		got[key] = string(data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	spec := bundle.Object.Spec
	if spec.Helm.Values != nil || spec.Targets[0].Helm.Values != nil || spec.ValuesHash == "" {
		t.Error("values are still in the Bundle, or there is no hash")
	}
}

func TestReadTargets(t *testing.T) {
	bundle, _ := readWeb(t)
	spec := bundle.Object.Spec
	if spec.Helm.Version != "1.10" {
		t.Errorf("version %q, want 1.10 as it is written", spec.Helm.Version)
	}
	selector := spec.Targets[0].ClusterSelector.MatchLabels
	if diff := cmp.Diff(map[string]string{"live": "yes", "zone": "007"}, selector); diff != "" {
		t.Errorf("selector (-want +got):\n%s", diff)
	}
	var names []string
	for _, target := range spec.Targets {
		names = append(names, target.Name)
	}
	if diff := cmp.Diff([]string{"target000", "other", "default"}, names); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
	if len(spec.TargetRestrictions) != 1 || spec.TargetRestrictions[0].ClusterGroup != "default" {
		t.Errorf("restrictions %v, want the group default: an empty overrideTargets widens nothing", spec.TargetRestrictions)
	}
}

func TestReadUnrestricted(t *testing.T) {
	for name, test := range map[string]struct {
		spec             string
		wantTargets      []string
		wantRestrictions int
	}{
		"nothing":        {"{}", []string{"default"}, 0},
		"customizations": {"targetCustomizations: [{name: a, clusterName: a}]", []string{"a"}, 0},
		"override":       {"overrideTargets: [{name: o, clusterName: a}]", []string{"o"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Read(t.Context(), repo(map[string]string{"fleet.yaml": test.spec, "a.yaml": ""}), Request{Name: "r", Unrestricted: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, target := range result.Bundles[0].Object.Spec.Targets {
				got = append(got, target.Name)
			}
			if diff := cmp.Diff(test.wantTargets, got); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
			if n := len(result.Bundles[0].Object.Spec.TargetRestrictions); n != test.wantRestrictions {
				t.Errorf("%d restrictions, want %d", n, test.wantRestrictions)
			}
		})
	}
}

func TestReadKustomizeOptions(t *testing.T) {
	files := repo(map[string]string{
		"app/fleet.yaml":            "kustomize: {dir: in}\ntargetCustomizations: [{name: out, clusterName: o, kustomize: {dir: out}}]",
		"app/in/kustomization.yaml": "resources: [a.yaml]", "app/in/a.yaml": "",
		"app/out/kustomization.yaml": "resources: [../../base]",
		"base/kustomization.yaml":    "resources: [b.yaml]", "base/b.yaml": "",
	})
	result, err := Read(t.Context(), files, Request{Name: "r", Paths: []string{"app"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	spec := result.Bundles[0].Object.Spec
	if spec.Kustomize.Dir != "in" || spec.Targets[0].Kustomize.Dir != ".kustomize/app/out" {
		t.Errorf("folders %q and %q, want in and .kustomize/app/out", spec.Kustomize.Dir, spec.Targets[0].Kustomize.Dir)
	}
}

// Files of the operating system give the same bundles as any other tree, and links do not get out.
func TestReadOS(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	root := filepath.Join(dir, "repo")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "app"), 0o755),
		os.WriteFile(secret, []byte("x"), 0o600),
		os.WriteFile(filepath.Join(root, "app", "a.yaml"), []byte(manifest), 0o600),
		os.Symlink("../../secret", filepath.Join(root, "app", "b.yaml")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := Read(t.Context(), os.DirFS(root), Request{Name: "r"}, nil)
	if fault.ReasonOf(err) != tree.ReasonLeaves || strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want %s without the place on this machine", err, tree.ReasonLeaves)
	}
}

func TestReadStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, repo(map[string]string{"a.yaml": ""}), Request{Name: "r"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

// Reading twice gives the same bytes, and a file beside the bundles changes no content.
func TestReadIsDeterministic(t *testing.T) {
	files := map[string]string{"README.md": "one"}
	for i := range 20 {
		files[fmt.Sprintf("app%d/fleet.yaml", i)] = "helm: {values: {a: {b: 1}, c: 2}}"
		files[fmt.Sprintf("app%d/x.yaml", i)] = ""
	}
	ids := func(files map[string]string) string {
		result, err := Read(t.Context(), repo(files), Request{Name: "r"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for _, b := range result.Bundles {
			stored, err := content.Manifest{Resources: b.Object.Spec.Resources}.Store()
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&out, b.Object.Name, stored.ID, b.Object.Spec.ValuesHash)
		}
		return out.String()
	}
	first := ids(files)
	files["README.md"] = "two"
	if second := ids(files); first != second {
		t.Errorf("got\n%s\nthen\n%s", first, second)
	}
}

func BenchmarkRead200(b *testing.B) {
	root := b.TempDir()
	for i := range 200 {
		dir := filepath.Join(root, fmt.Sprintf("app-%03d", i))
		for name, text := range map[string]string{
			"fleet.yaml":                "defaultNamespace: x\nhelm: {values: {a: 1}}\ntargetCustomizations: [{name: dev, clusterSelector: {matchLabels: {env: dev}}, helm: {values: {a: 2}}}]\n",
			"Chart.yaml":                "apiVersion: v2\nname: app\nversion: 1.0.0\n",
			"templates/deployment.yaml": strings.Repeat(manifest, 40), "templates/service.yaml": manifest, "values.yaml": "a: 0\n",
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		result, err := Read(b.Context(), os.DirFS(root), Request{Name: "r"}, nil)
		if err != nil || len(result.Bundles) != 200 {
			b.Fatalf("%v: %v", result, err)
		}
	}
}
