package render

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

const (
	chartYAML = "apiVersion: v2\nname: web\nversion: 1.0.0\n"
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	crd       = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.test}
spec: {group: example.test, scope: SCOPE, names: {kind: Thing, plural: things}, versions: []}
`
)

func manifestOf(files map[string]string) content.Manifest {
	var result content.Manifest
	for _, name := range slices.Sorted(maps.Keys(files)) {
		result.Resources = append(result.Resources, fleet.BundleResource{Name: name, Content: files[name]})
	}
	return result
}

func bundle(files map[string]string) Input {
	return Input{BundleID: "repo-app", ManifestID: "s-123", Manifest: manifestOf(files)}
}

func raw(documents ...string) Input {
	return bundle(map[string]string{"a.yaml": strings.Join(documents, "---\n")})
}

func chartOf(files map[string]string) Input {
	files = maps.Clone(files)
	if files["Chart.yaml"] == "" {
		files["Chart.yaml"] = chartYAML
	}
	return bundle(files)
}

func namesOf(objects []*unstructured.Unstructured) []string {
	var result []string
	for _, object := range objects {
		name := object.GetName()
		if object.GetNamespace() != "" {
			name = object.GetNamespace() + "/" + name
		}
		result = append(result, object.GetKind()+" "+name)
	}
	return result
}

func TestStyle(t *testing.T) {
	download := chartFolder(fleet.HelmOptions{Chart: "web", Repo: "https://charts.example.test", Version: "1"})
	for name, test := range map[string]struct {
		files   []string
		options fleet.BundleDeploymentOptions
		want    Style
		wantErr string
	}{
		"raw":                      {[]string{"a.yaml"}, fleet.BundleDeploymentOptions{}, Raw, ""},
		"nothing":                  {nil, fleet.BundleDeploymentOptions{}, Raw, ""},
		"chart":                    {[]string{"Chart.yaml"}, fleet.BundleDeploymentOptions{}, Helm, ""},
		"chart below":              {[]string{"c/Chart.yaml"}, fleet.BundleDeploymentOptions{}, Raw, ""},
		"chart by path":            {[]string{"c/Chart.yaml"}, helm("./c"), Helm, ""},
		"chart by rooted path":     {[]string{"c/Chart.yaml"}, helm("/c/"), Helm, ""},
		"chart in the root, named": {[]string{"Chart.yaml"}, helm("."), Helm, ""},
		"chart above":              {[]string{"a.yaml"}, helm("../c"), "", `helm.chart "../c": the bundle holds no such chart`},
		"chart not there":          {[]string{"a.yaml"}, helm("c"), "", `helm.chart "c": the bundle holds no such chart`},
		"downloaded":               {[]string{download + "/web/Chart.yaml"}, remote("web", "1"), Helm, ""},
		"downloaded flat":          {[]string{download + "/Chart.yaml"}, remote("web", "1"), Helm, ""},
		"downloaded too deep":      {[]string{download + "/web/charts/Chart.yaml"}, remote("web", "1"), "", "holds no such chart"},
		"downloaded another":       {[]string{download + "/web/Chart.yaml"}, remote("web", "2"), "", "holds no such chart"},
		"kustomization.yaml":       {[]string{"kustomization.yaml"}, fleet.BundleDeploymentOptions{}, Kustomize, ""},
		"kustomization.yml":        {[]string{"kustomization.yml"}, fleet.BundleDeploymentOptions{}, Kustomize, ""},
		"Kustomization":            {[]string{"Kustomization"}, fleet.BundleDeploymentOptions{}, Kustomize, ""},
		"kustomize folder":         {[]string{"o/kustomization.yml", "a.yaml"}, dir("o/"), Kustomize, ""},
		"kustomize folder missing": {[]string{"a.yaml"}, dir("o"), "", `kustomize.dir "o": there is no kustomization.yaml in it`},
		"kustomize folder outside": {[]string{"../o/kustomization.yaml"}, dir("../o"), "", `kustomize.dir "../o" leaves the bundle`},
		"both":                     {[]string{"Chart.yaml", "kustomization.yaml"}, fleet.BundleDeploymentOptions{}, HelmAndKustomize, ""},
		"download and folder":      {[]string{download + "/web/Chart.yaml", "o/Kustomization"}, fleet.BundleDeploymentOptions{Helm: remote("web", "1").Helm, Kustomize: dir("o").Kustomize}, HelmAndKustomize, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for _, name := range test.files {
				files[name] = "x: y\n"
			}
			got, err := styleOf(manifestOf(files), test.options)
			if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Fatalf("error %v, want %q", err, test.wantErr)
			}
			if got != test.want {
				t.Errorf("style %q, want %q", got, test.want)
			}
		})
	}
}

func helm(chart string) fleet.BundleDeploymentOptions {
	return fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Chart: chart}}
}

func remote(chart, version string) fleet.BundleDeploymentOptions {
	return fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Chart: chart, Repo: "https://charts.example.test", Version: version}}
}

func dir(name string) fleet.BundleDeploymentOptions {
	return fleet.BundleDeploymentOptions{Kustomize: &fleet.KustomizeOptions{Dir: name}}
}

func values(data map[string]any) *fleet.HelmOptions {
	return &fleet.HelmOptions{Values: &fleet.GenericMap{Data: data}}
}

func TestReleaseNames(t *testing.T) {
	for name, test := range map[string]struct {
		id                  string
		options             fleet.BundleDeploymentOptions
		wantName, wantSpace string
	}{
		"defaults":           {"repo-app", fleet.BundleDeploymentOptions{}, "repo-app", "default"},
		"made from the id":   {"Repo/App", fleet.BundleDeploymentOptions{}, names.HelmRelease("Repo/App"), "default"},
		"named":              {"repo-app", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{ReleaseName: "web"}}, "web", "default"},
		"default namespace":  {"a", fleet.BundleDeploymentOptions{DefaultNamespace: "d"}, "a", "d"},
		"forced namespace":   {"a", fleet.BundleDeploymentOptions{DefaultNamespace: "d", TargetNamespace: "f"}, "a", "f"},
		"helm without names": {"a", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{}}, "a", "default"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ReleaseName(test.id, test.options); got != test.wantName {
				t.Errorf("name %q, want %q", got, test.wantName)
			}
			if got := ReleaseNamespace(test.options); got != test.wantSpace {
				t.Errorf("namespace %q, want %q", got, test.wantSpace)
			}
		})
	}
}

func TestGeneratedChart(t *testing.T) {
	for name, test := range map[string]struct {
		commit, want string
		files        map[string]string
	}{
		"manifest id":   {"", "v0.0.0+s-123", map[string]string{"a.yaml": configMap}},
		"commit":        {"0123456789abcdef", "v0.0.0+git-0123456789ab", map[string]string{"a.yaml": configMap}},
		"with overlays": {"0123456789abcdef", "v0.0.0+git-0123456789ab", map[string]string{"a.yaml": configMap, "overlays/x/a.yaml": configMap}},
		"kustomize":     {"0123", "v0.0.0+git-0123", map[string]string{"a.yaml": configMap, "kustomization.yaml": "resources: [a.yaml]\n"}},
		"odd commit":    {"v1.0/x", "v0.0.0+git-v1-0-x", map[string]string{"a.yaml": configMap}},
	} {
		t.Run(name, func(t *testing.T) {
			in := bundle(test.files)
			in.Commit = test.commit
			if test.files["overlays/x/a.yaml"] != "" {
				in.Options.YAML = &fleet.YAMLOptions{Overlays: []string{"x"}}
			}
			release, err := Build(t.Context(), in, Marks{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := release.Chart.Metadata; got.Version != test.want || got.Name != "repo-app" {
				t.Errorf("chart %s %s, want repo-app %s", got.Name, got.Version, test.want)
			}
			if len(release.Chart.Files)+len(release.Chart.Templates) > 0 {
				t.Error("the chart, and with it every stored revision, holds the plain manifests")
			}
		})
	}
}

func TestObjects(t *testing.T) {
	overlay := func(names ...string) fleet.BundleDeploymentOptions {
		return fleet.BundleDeploymentOptions{YAML: &fleet.YAMLOptions{Overlays: names}}
	}
	forced := fleet.BundleDeploymentOptions{TargetNamespace: "forced"}
	for name, test := range map[string]struct {
		in      Input
		options fleet.BundleDeploymentOptions
		want    []string
		wantErr string
	}{
		"plain manifests are no templates": {in: raw("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '{{ .Values.x }}'}\n"), want: []string{"ConfigMap a"}},
		"templates among plain manifests": {in: bundle(map[string]string{"a.yaml": configMap, "names.txt": "b c",
			"templates/t.yaml": "{{ range .Files.Get \"names.txt\" | splitList \" \" }}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: {{ . }}-{{ $.Values.x }}}\n{{ end }}"}),
			options: fleet.BundleDeploymentOptions{Helm: values(map[string]any{"x": 1.0})}, want: []string{"Secret b-1", "Secret c-1", "ConfigMap a"}},
		"folders of other bundles": {in: bundle(map[string]string{"a.yaml": configMap, "n/fleet.yaml": "name: n\n", "n/deep/b.yaml": "broken: [", "c/Chart.yaml": chartYAML,
			"c/values.yaml": "x: y\n", "m/fleet.yml": "", "m/b.yaml": "x: y\n", "fleet.yml": "name: x\n", "near/n.yaml": strings.ReplaceAll(configMap, "name: a", "name: near"),
			".kustomize/fleet.yaml": "", ".kustomize/x/b.yaml": "x: y\n"}), want: []string{"ConfigMap a", "ConfigMap near"}},
		"install order": {in: raw("apiVersion: example.test/v1\nkind: Thing\nmetadata: {name: t}\n", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
			strings.ReplaceAll(crd, "SCOPE", "Namespaced"), configMap, "apiVersion: v1\nkind: Namespace\nmetadata: {name: space}\n"),
			want: []string{"Namespace space", "ConfigMap a", "CustomResourceDefinition things.example.test", "Deployment d", "Thing t"}},
		"kinds of document": {in: bundle(map[string]string{"a.yaml": "# none\n---\n" + configMap, "b.yml": "{apiVersion: v1, kind: Secret, metadata: {name: flow}}",
			"c.json": `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "item"}}]}`, "README.md": "# x", "d.txt": "x"}),
			want: []string{"Secret flow", "Secret item", "ConfigMap a"}},
		"overlay adds, replaces, patches": {in: bundle(map[string]string{"a.yaml": configMap, "overlays/x/b.yaml": strings.ReplaceAll(configMap, "name: a", "name: b"), "overlays/x/a_patch.yaml": "metadata: {namespace: p}\n"}),
			options: overlay("x"), want: []string{"ConfigMap p/a", "ConfigMap b"}},
		"overlays are content elsewhere": {in: bundle(map[string]string{"kustomization.yaml": "resources: [overlays/x]\n", "overlays/x/kustomization.yaml": "resources: [a.yaml]\n", "overlays/x/a.yaml": configMap}), want: []string{"ConfigMap a"}},
		"kustomize copies stay out of the chart": {in: chartOf(map[string]string{"templates/a.yaml": configMap, ".kustomize/b/kustomization.yaml": "namePrefix: k-\n"}),
			options: dir(".kustomize/b"), want: []string{"ConfigMap k-a"}},
		"hooks come last and are forced too": {in: chartOf(map[string]string{"templates/h.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: h, namespace: other, annotations: {helm.sh/hook: pre-install}}\n", "templates/a.yaml": configMap}),
			options: forced, want: []string{"ConfigMap forced/a", "Job forced/h"}},
		"notes are no manifest":           {in: chartOf(map[string]string{"templates/NOTES.txt": "hi {{ .Release.Name }}", "templates/a.yaml": configMap}), want: []string{"ConfigMap a"}},
		"a chart's crds are not included": {in: chartOf(map[string]string{"crds/c.yaml": crd, "templates/a.yaml": configMap}), want: []string{"ConfigMap a"}},
		"flow style from a template":      {in: chartOf(map[string]string{"templates/a.yaml": "{{ dict \"apiVersion\" \"v1\" \"kind\" \"ConfigMap\" \"metadata\" (dict \"name\" \"a\") | toJson }}\n"}), want: []string{"ConfigMap a"}},
		"lookup finds nothing":            {in: chartOf(map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: n{{ len (lookup \"v1\" \"Secret\" \"\" \"\") }}}\n"}), want: []string{"ConfigMap n0"}},
		"no name is resolved":             {in: chartOf(map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"n{{ getHostByName \"localhost\" }}\"}\n"}), want: []string{"ConfigMap n"}},
		"numbers are Helm's":              {in: chartOf(map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Values.n }}-{{ .Values.big | int }}\"}\n"}), options: fleet.BundleDeploymentOptions{Helm: values(map[string]any{"n": 3, "big": int64(5000000)})}, want: []string{"ConfigMap 3-5000000"}},
		"subchart's values": {in: chartOf(map[string]string{"Chart.yaml": chartYAML + "dependencies: [{name: sub, version: '*', alias: other, condition: other.on, import-values: [{child: exp, parent: imp}]}, {name: sub, version: '*', tags: [extra]}]\n",
			"charts/sub/Chart.yaml": strings.ReplaceAll(chartYAML, "web", "sub"), "charts/sub/values.yaml": "exp: {x: imported}\n", "charts/sub/templates/s.yaml": strings.ReplaceAll(configMap, "name: a", "name: {{ .Chart.Name }}-{{ .Values.global.g }}"),
			"templates/a.yaml": strings.ReplaceAll(configMap, "name: a", "name: {{ .Values.imp.x }}")}),
			options: fleet.BundleDeploymentOptions{Helm: values(map[string]any{"other": map[string]any{"on": true}, "tags": map[string]any{"extra": false}, "global": map[string]any{"g": "g"}})},
			want:    []string{"ConfigMap other-g", "ConfigMap imported"}},
		"namespace forced": {in: raw("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n", "apiVersion: example.test/v1\nkind: Unknown\nmetadata: {name: u}\n"), options: forced, want: []string{"ConfigMap forced/a", "Unknown forced/u"}},

		"cluster-scoped kind, forced":        {in: raw("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n"), options: forced, wantErr: "render bundle repo-app: a.yaml, document 1 (line 1): ClusterRole r is cluster-scoped, but the options force namespace forced"},
		"cluster-scoped hook, forced":        {in: chartOf(map[string]string{"templates/h.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: h, annotations: {helm.sh/hook: pre-install}}\n"}), options: forced, wantErr: "web/templates/h.yaml: Namespace h is cluster-scoped"},
		"defined in crds/, forced":           {in: chartOf(map[string]string{"crds/c.yaml": strings.ReplaceAll(crd, "SCOPE", "Cluster"), "templates/t.yaml": "apiVersion: example.test/v1\nkind: Thing\nmetadata: {name: t}\n"}), options: forced, wantErr: "Thing t is cluster-scoped"},
		"kind-less document":                 {in: raw(configMap, "data: {x: y}\n"), wantErr: "render bundle repo-app: a.yaml, document 2 (line 5): no Kubernetes object: it has no apiVersion; a file that holds none can be left out with .fleetignore"},
		"kustomization in plain files":       {in: bundle(map[string]string{"a.yaml": configMap, "k/kustomization.yaml": "resources: []\n"}), wantErr: "k/kustomization.yaml, document 1 (line 1): no Kubernetes object: it has no apiVersion; to build this folder with Kustomize, name it in kustomize.dir"},
		"typed kustomization in plain files": {in: bundle(map[string]string{"a.yaml": configMap, "k/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n"}), wantErr: "k/kustomization.yaml: a kustomization is no object of a cluster; to build this folder with Kustomize, name it in kustomize.dir"},
		"kind-less from a template":          {in: chartOf(map[string]string{"templates/a.yaml": configMap + "---\ndata: {x: y}\n"}), wantErr: "web/templates/a.yaml: no Kubernetes object"},
		"name that YAML reads otherwise":     {in: raw("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: no}\n"), wantErr: "a.yaml, document 1 (line 1): metadata.name of ConfigMap is no text; quote it"},
		"no name":                            {in: raw("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: x}\n"), wantErr: "a.yaml, document 1 (line 1): ConfigMap has no metadata.name"},
		"twice":                              {in: bundle(map[string]string{"a.yaml": configMap, "b.yaml": configMap + "data: {x: y}\n"}), wantErr: "ConfigMap a is in the bundle twice, with different content: a.yaml, document 1 (line 1) and b.yaml, document 1 (line 1)"},
		"twice, once by default":             {in: raw(configMap, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n"), wantErr: "is in the bundle twice"},
		"twice, word for word":               {in: bundle(map[string]string{"a.yaml": configMap, "b.yaml": configMap}), want: []string{"ConfigMap a"}},
		"twice in two namespaces":            {in: raw(configMap, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n"), want: []string{"ConfigMap a", "ConfigMap b/a"}},
		"unknown overlay":                    {in: raw(configMap), options: overlay("x"), wantErr: `yaml.overlays names "x"`},
		"template that fails":                {in: chartOf(map[string]string{"templates/a.yaml": "\n{{ fail \"choose one\" }}"}), wantErr: "execution error at (web/templates/a.yaml:2:3): choose one"},
		"required value":                     {in: chartOf(map[string]string{"templates/a.yaml": "{{ required \"x is needed\" .Values.x }}"}), wantErr: "execution error at (web/templates/a.yaml:1:3): x is needed"},
		"template that does not parse":       {in: chartOf(map[string]string{"templates/a.yaml": "a\n{{ if }}"}), wantErr: "parse error at (web/templates/a.yaml:2)"},
		"rendered YAML is broken":            {in: chartOf(map[string]string{"templates/a.yaml": "a: b\n  c: d\n"}), wantErr: "web/templates/a.yaml"},
		"values do not fit the schema":       {in: chartOf(map[string]string{"values.schema.json": `{"properties": {"n": {"type": "integer"}}}`}), options: fleet.BundleDeploymentOptions{Helm: values(map[string]any{"n": "hunter2hunter2"})}, wantErr: "at '/n': got string, want integer"},
		"other Kubernetes":                   {in: chartOf(map[string]string{"Chart.yaml": chartYAML + "kubeVersion: '<1.20.0'\n"}), wantErr: "chart web wants Kubernetes <1.20.0, this is v1.37.0"},
		"Chart.yaml is broken":               {in: chartOf(map[string]string{"Chart.yaml": "name: [\n"}), wantErr: "load chart .: cannot load Chart.yaml"},
		"remote base":                        {in: bundle(map[string]string{"kustomization.yaml": "resources: ['https://example.test/x']\n"}), wantErr: "render bundle repo-app: kustomization.yaml: resources[0] is https://example.test/x"},
		"base outside":                       {in: bundle(map[string]string{"kustomization.yaml": "resources: ['../base']\n"}), wantErr: "'../base'"},
		"two files of one name":              {in: Input{BundleID: "b", Manifest: content.Manifest{Resources: []fleet.BundleResource{{Name: "a.yaml"}, {Name: "./a.yaml"}}}}, wantErr: "a.yaml: the bundle holds two files of this name"},
		"file with a rooted name":            {in: Input{BundleID: "b", Manifest: content.Manifest{Resources: []fleet.BundleResource{{Name: "/a.yaml"}}}}, wantErr: "without a usable name"},
		"unknown encoding":                   {in: Input{BundleID: "b", Manifest: content.Manifest{Resources: []fleet.BundleResource{{Name: "a.yaml", Encoding: "rot13"}}}}, wantErr: "unknown encoding"},
		"release name":                       {in: raw(configMap), options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{ReleaseName: "Not valid"}}, wantErr: `release name "Not valid"`},
		"labels that are numbers":            {in: raw("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {v: 1.10}}\n"), wantErr: "a.yaml, document 1 (line 1): ConfigMap a: metadata.labels must be texts; quote numbers"},
		"annotations that are numbers":       {in: raw(strings.ReplaceAll(strings.ReplaceAll(crd, "SCOPE", "Cluster"), "{name:", "{annotations: {n: 3}, name:")), wantErr: "metadata.annotations must be texts"},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.Options = test.options
			objects, err := Objects(t.Context(), test.in, Capabilities{}, nil)
			if test.wantErr != "" {
				checkStalled(t, err, test.wantErr)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, namesOf(objects)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func checkStalled(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("error %v, want one with %q", err, want)
	}
	if fault.ClassOf(err) != fault.Stalled || fault.ReasonOf(err) != ReasonRenderFailed {
		t.Errorf("class %s, reason %s", fault.ClassOf(err), fault.ReasonOf(err))
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v tells a value", err)
	}
}

// Messages of templates may repeat values; the error must not.
func TestErrorsHoldNoValues(t *testing.T) {
	for name, template := range map[string]string{
		"fail":             `{{ fail (printf "bad password %s" .Values.password) }}`,
		"tpl":              `{{ tpl .Values.template . }}`,
		"tpl that runs":    `{{ tpl (printf "{{ fail %q }}" .Values.password) . }}`,
		"broken YAML":      "a: {{ .Values.password }}\n{{ .Values.password }}",
		"no object":        "{{ .Values.password }}",
		"wrong type":       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {{ .Values.password }}}",
		"a number, parsed": `{{ .Values.password | mustToDate "2006" }}`,
	} {
		t.Run(name, func(t *testing.T) {
			in := chartOf(map[string]string{"templates/a.yaml": template})
			in.Options.Helm = values(map[string]any{"password": "hunter2-longer", "template": "hunter2-longer {{ fail \"hunter2-longer\" }}"})
			_, err := Objects(t.Context(), in, Capabilities{}, nil)
			checkStalled(t, err, "templates/a.yaml")
		})
	}
}

func TestSchemaSwitch(t *testing.T) {
	in := chartOf(map[string]string{"values.schema.json": `{"required": ["x"]}`, "templates/a.yaml": configMap})
	in.Options.Helm = &fleet.HelmOptions{SkipSchemaValidation: true}
	if _, err := Objects(t.Context(), in, Capabilities{}, nil); err != nil {
		t.Errorf("validated although switched off: %v", err)
	}
}

// A schema's references to other places are not followed, in the chart and in its subcharts; the rest counts.
func TestSchemaStaysLocal(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	schemaText := fmt.Sprintf(`{"$schema": "%[1]s/meta", "properties": {
		"a": {"$ref": "%[1]s/a.json"}, "b": {"$ref": "file:///etc/passwd"}, "c": {"$ref": "other.json#/x"},
		"d": {"$ref": "#/$defs/int"}, "e": {"$ref": "https://inside.example.test/e"}},
		"$defs": {"int": {"type": "integer"}, "e": {"$id": "https://inside.example.test/e", "type": "integer"}}}`, server.URL)
	for name, test := range map[string]struct {
		values  map[string]any
		wantErr string
	}{
		"remote, anything goes": {map[string]any{"a": "x", "b": "x", "c": "x"}, ""},
		"local, checked":        {map[string]any{"d": "x"}, "at '/d'"},
		"by id, checked":        {map[string]any{"e": "x"}, "at '/e'"},
	} {
		for _, place := range []string{"", "charts/sub/"} {
			t.Run(name+" "+place, func(t *testing.T) {
				in := chartOf(map[string]string{"charts/sub/Chart.yaml": strings.ReplaceAll(chartYAML, "web", "sub"), place + "values.schema.json": schemaText})
				in.Options.Helm = values(test.values)
				if place != "" {
					in.Options.Helm = values(map[string]any{"sub": test.values})
				}
				_, err := Objects(t.Context(), in, Capabilities{}, nil)
				if (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want %q", err, test.wantErr)
				}
			})
		}
	}
	if count := requests.Load(); count > 0 {
		t.Errorf("%d requests left the process", count)
	}
}

type scoper map[string]bool

func (s scoper) Namespaced(kind schema.GroupKind) (namespaced, known bool) {
	namespaced, known = s[kind.Kind]
	return namespaced, known
}

func TestScoperDecidesFirst(t *testing.T) {
	in := raw("apiVersion: example.test/v1\nkind: Thing\nmetadata: {name: t}\n")
	in.Options.TargetNamespace = "forced"
	if _, err := Objects(t.Context(), in, Capabilities{}, scoper{"Thing": true}); err != nil {
		t.Error(err)
	}
	_, err := Objects(t.Context(), in, Capabilities{}, scoper{"Thing": false})
	checkStalled(t, err, "Thing t is cluster-scoped")
}

func TestDefinitionsAreKept(t *testing.T) {
	for name, test := range map[string]struct {
		remove bool
		want   string
	}{"kept": {false, "keep"}, "removed when asked": {true, ""}} {
		t.Run(name, func(t *testing.T) {
			in := raw(strings.ReplaceAll(crd, "SCOPE", "Cluster"), configMap)
			in.Options.DeleteCRDResources = test.remove
			objects, err := Objects(t.Context(), in, Capabilities{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				want := ""
				if object.GetKind() == "CustomResourceDefinition" {
					want = test.want
				}
				if got := object.GetAnnotations()["helm.sh/resource-policy"]; got != want {
					t.Errorf("%s: policy %q, want %q", object.GetName(), got, want)
				}
			}
		})
	}
}

func TestMarksDoNotHideWrongLabels(t *testing.T) {
	release, err := Build(t.Context(), raw("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: {version: 1.0}}\n"), Marks{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = install(t, release)
	checkStalled(t, err, "ConfigMap a: metadata.labels must be texts")
}

// How an object is written stands on it in the release's record, whatever a chart says of it.
func TestHowObjectsAreWritten(t *testing.T) {
	in := raw(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {fleet.cattle.io/apply: forged}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: c}}
`)
	in.Options.DefaultNamespace = "release"
	in.Options.ManifestConfigs = []fleet.ManifestConfig{
		{Resource: fleet.ResourceSelector{Kind: "ConfigMap", Namespace: "release", Name: "b"}, Apply: &fleet.ApplyOptions{Strategy: fleet.ApplyReadOnly}},
		{Resource: fleet.ResourceSelector{Kind: "Secret", Namespace: "elsewhere"}, Apply: &fleet.ApplyOptions{Strategy: fleet.ApplyReadOnly}},
	}
	release, err := Build(t.Context(), in, Marks{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	installed, err := install(t, release)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(installed.Manifest, "forged") || strings.Count(installed.Manifest, fleet.ApplyAnnotation) != 1 ||
		!strings.Contains(installed.Manifest, `{"strategy":"ReadOnly"}`) {
		t.Errorf("manifest:\n%s", installed.Manifest)
	}
}

func TestCapabilities(t *testing.T) {
	in := chartOf(map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Capabilities.KubeVersion.Minor }}-{{ .Capabilities.APIVersions.Has \"x.test/v1/Y\" }}-{{ .Capabilities.APIVersions.Has \"apps/v1\" }}\"}\n"})
	for name, test := range map[string]struct {
		capabilities Capabilities
		want         string
	}{
		"default": {Capabilities{}, "ConfigMap 37-false-true"},
		"given":   {Capabilities{KubeVersion: "1.29.3", APIVersions: []string{"x.test/v1/Y"}}, "ConfigMap 29-true-true"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(t.Context(), in, test.capabilities, nil)
			if err != nil || namesOf(objects)[0] != test.want {
				t.Errorf("got %v, %v, want %s", namesOf(objects), err, test.want)
			}
		})
	}
	if _, err := Objects(t.Context(), in, Capabilities{KubeVersion: "new"}, nil); err == nil {
		t.Error("no error for a Kubernetes version that is none")
	}
}

// The same files in any order, any number of times, give the same objects in the same order, and the
// input stays as it was.
func TestRenderingIsDeterministic(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, recorded := range readRecordings(t) {
		t.Run(recorded.name, func(t *testing.T) {
			before := recorded.input.Options.DeepCopy()
			want, err := Objects(t.Context(), recorded.input, Capabilities{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				shuffled := recorded.input
				shuffled.Manifest.Resources = slices.Clone(recorded.input.Manifest.Resources)
				random.Shuffle(len(shuffled.Manifest.Resources), func(i, j int) {
					resources := shuffled.Manifest.Resources
					resources[i], resources[j] = resources[j], resources[i]
				})
				got, err := Objects(t.Context(), shuffled, Capabilities{}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("another order of files (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(before, &recorded.input.Options); diff != "" {
				t.Errorf("the options changed:\n%s", diff)
			}
		})
	}
}

// styleOf returns the style of a bundle's files with a cluster's options.
func styleOf(files content.Manifest, options fleet.BundleDeploymentOptions) (Style, error) {
	tree, err := unpack(files)
	if err != nil {
		return "", err
	}
	plan, err := planFor(tree, options)
	if err != nil {
		return "", err
	}
	return plan.style, nil
}
