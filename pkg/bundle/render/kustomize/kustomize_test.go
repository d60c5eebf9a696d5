package kustomize

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fairlead-dev/fairlead/pkg/bundle/render/manifest"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

func tree(pairs ...string) map[string][]byte {
	result := map[string][]byte{}
	for i := 0; i < len(pairs); i += 2 {
		result[pairs[i]] = []byte(pairs[i+1])
	}
	return result
}

func TestBuild(t *testing.T) {
	for name, test := range map[string]struct {
		tree    map[string][]byte
		dir     string
		input   string
		want    string
		wantErr string
	}{
		"default spelling": {tree("kustomization.yaml", "resources: [a.yaml]\n", "a.yaml", configMap), ".", "", "ConfigMap a", ""},
		"yml":              {tree("kustomization.yml", "resources: [a.yaml]\n", "a.yaml", configMap), ".", "", "ConfigMap a", ""},
		"Kustomization":    {tree("Kustomization", "resources: [a.yaml]\n", "a.yaml", configMap), ".", "", "ConfigMap a", ""},
		"two spellings": {tree("kustomization.yaml", "resources: [a.yaml]\n", "Kustomization", "resources: [a.yaml]\n", "a.yaml", configMap),
			".", "", "", "multiple kustomization files"},
		"base beside the folder": {tree("o/kustomization.yaml", "resources: [../base]\nnamePrefix: p-\n", "base/kustomization.yaml", "resources: [a.yaml]\n", "base/a.yaml", configMap),
			"o", "", "ConfigMap p-a", ""},
		"base above the bundle": {tree("kustomization.yaml", "resources: [../../base]\n", "../../base/kustomization.yaml", "resources: [a.yaml]\n", "../../base/a.yaml", configMap),
			".", "", "ConfigMap a", ""},
		"file above the folder": {tree("o/kustomization.yaml", "resources: [../a.yaml]\n", "a.yaml", configMap), "o", "", "ConfigMap a", ""},
		"component": {tree("kustomization.yaml", "resources: [a.yaml]\ncomponents: [c]\n", "a.yaml", configMap,
			"c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -c\n"), ".", "", "ConfigMap a-c", ""},
		"input first":             {tree("kustomization.yaml", "resources: [a.yaml]\n", "a.yaml", configMap), ".", strings.ReplaceAll(configMap, "name: a", "name: input"), "ConfigMap input, ConfigMap a", ""},
		"input only":              {tree("kustomization.yaml", "namePrefix: p-\n"), ".", configMap, "ConfigMap p-a", ""},
		"input, other case":       {tree("kustomization.yaml", "Resources: [a.yaml]\n", "a.yaml", configMap), ".", strings.ReplaceAll(configMap, "name: a", "name: input"), "ConfigMap input, ConfigMap a", ""},
		"input, no list":          {tree("kustomization.yaml", "resources: 3\n"), ".", configMap, "", "kustomization.yaml: invalid Kustomization: json: cannot unmarshal number"},
		"missing file":            {tree("kustomization.yaml", "resources: [b.yaml]\n"), ".", "", "", "b.yaml"},
		"unknown field":           {tree("kustomization.yaml", "resource: [b.yaml]\n"), ".", "", "", `kustomization.yaml: invalid Kustomization: json: unknown field "resource"`},
		"unknown field in a base": {tree("kustomization.yaml", "resources: [b]\n", "b/kustomization.yaml", "resource: [b.yaml]\n"), ".", "", "", `b/kustomization.yaml: invalid Kustomization: json: unknown field "resource"`},
		"sorted":                  {tree("kustomization.yaml", "resources: [a.yaml, b.yaml]\nsortOptions: {order: legacy}\n", "a.yaml", configMap, "b.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n"), ".", "", "Namespace n, ConfigMap a", ""},
		"broken":                  {tree("kustomization.yaml", "resources: [\n"), ".", "", "", "kustomization.yaml: yaml: line"},
		"folder of plugins":       {tree("kustomization.yaml", "generators: [g]\n", "g/kustomization.yaml", "resources: [t.yaml]\n"), ".", "", "", "generators[0] is a folder"},
		"plugin in a file":        {tree("kustomization.yaml", "resources: [a.yaml]\ntransformers: [t.yaml]\n", "a.yaml", configMap, "t.yaml", "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: x}\nprefix: p-\nfieldSpecs: [{path: metadata/name}]\n"), ".", "", "ConfigMap p-a", ""},
		"cycle":                   {tree("kustomization.yaml", "resources: [a]\n", "a/kustomization.yaml", "resources: [..]\n"), ".", "", "", "cycle"},
		"no folder":               {tree("a.yaml", configMap), "k", "", "", "k"},
		"absolute path":           {tree("kustomization.yaml", "resources: [/etc]\n"), ".", "", "", "resources[0] is an absolute path"},
		"helm chart":              {tree("kustomization.yaml", "helmCharts: [{name: x, repo: \"oci://r.example.test\"}]\n"), ".", "", "", "kustomization.yaml: helmCharts would run a program and is not supported; name the chart in helm of fleet.yaml"},
		"program as plugin":       {tree("kustomization.yaml", "generators: [g.yaml]\n", "g.yaml", "apiVersion: example.test/v1\nkind: Gen\nmetadata: {name: g, annotations: {config.kubernetes.io/function: \"exec: {path: /bin/true}\"}}\n"), ".", "", "", "external plugins disabled"},
		"container as plugin":     {tree("kustomization.yaml", "transformers: [g.yaml]\n", "g.yaml", "apiVersion: example.test/v1\nkind: Gen\nmetadata: {name: g, annotations: {config.kubernetes.io/function: \"container: {image: x}\"}}\n"), ".", "", "", "external plugins disabled"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := Build(t.Context(), test.tree, test.dir, []byte(test.input))
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want one with %q", err, test.wantErr)
				}
				if strings.Contains(err.Error(), "/bundle") {
					t.Errorf("error %v tells the mount point", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			objects, err := manifest.Parse("out", out)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, object := range objects {
				got = append(got, manifest.Name(object))
			}
			if names := strings.Join(got, ", "); names != test.want {
				t.Errorf("built %s, want %s", names, test.want)
			}
		})
	}
}

// Whatever form an address has, it is refused before anything is fetched.
func TestNothingRemote(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests.Add(1) }))
	defer server.Close()
	builtin := func(kind, fields string) string {
		return "apiVersion: builtin\nkind: " + kind + "\nmetadata: {name: x}\n" + fields
	}
	for name, files := range map[string]map[string][]byte{
		"web resource":         tree("kustomization.yaml", "resources: ['URL/a.yaml']\n"),
		"upper case field":     tree("kustomization.yaml", "RESOURCES: ['URL/a.yaml']\n"),
		"folded field":         tree("kustomization.yaml", "reſources: ['URL/a.yaml']\n"),
		"upper case scheme":    tree("kustomization.yaml", "resources: ['HTTP://127.0.0.1:1/a.yaml']\n"),
		"ssh":                  tree("kustomization.yaml", "resources: ['ssh://git@127.0.0.1/a/b']\n"),
		"scp":                  tree("kustomization.yaml", "resources: ['git@127.0.0.1:a/b.git']\n"),
		"scp with a user":      tree("kustomization.yaml", "resources: ['me@127.0.0.1:a/b.git']\n"),
		"forced git":           tree("kustomization.yaml", "resources: ['git::URL/a/b']\n"),
		"file":                 tree("kustomization.yaml", "resources: ['file:///etc/repo.git']\n"),
		"github short":         tree("kustomization.yaml", "resources: ['github.com/a/b?ref=main']\n"),
		"github as a folder":   tree("kustomization.yaml", "resources: ['github.com/a/b']\n", "github.com/a/b/kustomization.yaml", "resources: []\n"),
		"github scp":           tree("kustomization.yaml", "bases: ['GitHub.com:a/b']\n"),
		"component":            tree("kustomization.yaml", "components: ['URL/a/b']\n"),
		"in a base":            tree("kustomization.yaml", "resources: [b]\n", "b/kustomization.yaml", "resources: ['URL/a.yaml']\n"),
		"patch file":           tree("kustomization.yaml", "patches: [{path: 'URL/a.yaml'}]\n"),
		"old patch file":       tree("kustomization.yaml", "patchesStrategicMerge: ['URL/a.yaml']\n"),
		"replacement":          tree("kustomization.yaml", "replacements: [{path: 'URL/a.yaml'}]\n"),
		"generator file":       tree("kustomization.yaml", "configMapGenerator: [{name: a, files: ['URL/a']}]\n"),
		"generator key":        tree("kustomization.yaml", "configMapGenerator: [{name: a, files: ['k=URL/a']}]\n"),
		"generator env":        tree("kustomization.yaml", "secretGenerator: [{name: a, envs: ['URL/a']}]\n"),
		"definitions":          tree("kustomization.yaml", "crds: ['URL/a']\n"),
		"configuration":        tree("kustomization.yaml", "configurations: ['URL/a']\n"),
		"openapi":              tree("kustomization.yaml", "openapi: {path: 'URL/a'}\n"),
		"transformer":          tree("kustomization.yaml", "transformers: ['URL/a']\n"),
		"inline transformer":   tree("kustomization.yaml", "transformers:\n- |-\n  "+strings.ReplaceAll(builtin("PatchTransformer", "path: URL/a\n"), "\n", "\n  ")+"\n"),
		"transformer's file":   tree("kustomization.yaml", "transformers: [t.yaml]\n", "t.yaml", builtin("PatchTransformer", "path: URL/a\n")),
		"generator's file":     tree("kustomization.yaml", "generators: [t.yaml]\n", "t.yaml", builtin("ConfigMapGenerator", "files: ['k=URL/a']\n")),
		"one-line transformer": tree("kustomization.yaml", "transformers: ['{apiVersion: builtin, kind: PatchTransformer, metadata: {name: x}, path: URL/a}']\n"),
		"escaped":              tree("kustomization.yaml", `resources: ["\x68ttp://127.0.0.1:1/a.yaml"]`),
		"base with a newline":  tree("kustomization.yaml", "resources: [\"URL/a/b\\n\"]\n"),
	} {
		t.Run(name, func(t *testing.T) {
			for file, data := range files {
				files[file] = []byte(strings.ReplaceAll(string(data), "URL", server.URL))
			}
			_, err := Build(t.Context(), files, ".", nil)
			if err == nil || !strings.Contains(err.Error(), "nothing is read from other places than the repository") {
				t.Errorf("error %v, want a refusal", err)
			}
			if count := requests.Swap(0); count > 0 {
				t.Errorf("%d requests left the process", count)
			}
		})
	}
}

func TestAddressInErrorHasNoLogin(t *testing.T) {
	_, err := Build(t.Context(), tree("kustomization.yaml", "resources: ['https://me:hunter2@git.example.test/a/b?token=hunter2']\n"), ".", nil)
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "https://git.example.test/a/b") {
		t.Errorf("error %v, want the address without its login", err)
	}
}

func TestPatchInErrorIsLeftOut(t *testing.T) {
	_, err := Build(t.Context(), tree("kustomization.yaml", "resources: [a.yaml]\npatches: [{patch: 'hunter2: [', target: {name: a}}]\n", "a.yaml", configMap), ".", nil)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("error %v, want one without the patch", err)
	}
}

// Kustomize keeps a build's schema in variables of its packages.
func TestBuildsSideBySide(t *testing.T) {
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			files := tree("kustomization.yaml", "resources: [a.yaml]\nnamePrefix: p-\n", "a.yaml", configMap)
			if out, err := Build(t.Context(), files, ".", nil); err != nil || !strings.Contains(string(out), "name: p-a") {
				t.Errorf("built %q, %v", out, err)
			}
		})
	}
	group.Wait()
}

func TestWaitEndsWithTheContext(t *testing.T) {
	turn <- struct{}{}
	defer func() { <-turn }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Build(ctx, tree("kustomization.yaml", "resources: []\n"), ".", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

// No kustomization makes the build panic, and none names a place outside and is accepted.
func FuzzCheckLocal(f *testing.F) {
	for _, seed := range []string{
		"resources: [a.yaml]\n", "resources: ['https://x.test/a']\n", "generators: ['a: b\nfiles: [x]']\n", "components: [..]\n",
		"transformers:\n- |-\n  apiVersion: builtin\n  kind: PatchTransformer\n  path: a\n", "resources: {a: b}\n", "patches: [1, [2], {path: {}}]\n",
	} {
		f.Add(seed, "apiVersion: v1\nkind: A\n")
	}
	f.Fuzz(func(t *testing.T, kustomization, other string) {
		files := tree("kustomization.yaml", kustomization, "a.yaml", other, "a/kustomization.yaml", other)
		if checkLocal(files, ".") != nil {
			return
		}
		if strings.Contains(kustomization, "resources: ['https://") || strings.Contains(kustomization, "resources: ['http://") {
			t.Errorf("accepted %q", kustomization)
		}
	})
}
