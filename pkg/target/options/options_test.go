package options

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func decode(t testing.TB, text string) fleet.BundleDeploymentOptions {
	t.Helper()
	var options fleet.BundleDeploymentOptions
	if err := yaml.UnmarshalStrict([]byte(text), &options); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return options
}

func TestResolve(t *testing.T) {
	for name, test := range map[string]struct {
		root   string
		layers []string
		want   string
	}{
		"nothing":                       {"{}", nil, "{}"},
		"empty layer":                   {"{defaultNamespace: a}", []string{"{}"}, "{defaultNamespace: a}"},
		"texts that are set win":        {"{defaultNamespace: a, namespace: b, serviceAccount: c}", []string{"{defaultNamespace: x}"}, "{defaultNamespace: x, namespace: b, serviceAccount: c}"},
		"a dash is a dash":              {"{namespace: b}", []string{"{namespace: '-'}"}, "{namespace: '-'}"},
		"helm texts":                    {"{helm: {chart: a, version: '1', repo: r}}", []string{"{helm: {version: '2', releaseName: x}}"}, "{helm: {chart: a, version: '2', repo: r, releaseName: x}}"},
		"how to write":                  {"{apply: {strategy: Helm, force: false, ignoreFields: [{condition: OnMemberChange, jsonPointers: [/a]}]}}", []string{"{apply: {strategy: CreateOnly, ignoreFields: [{condition: OnMemberPresent, jsonPaths: [.b]}]}, manifestConfigs: [{resource: {kind: A}, apply: {force: true}}]}"}, "{apply: {strategy: CreateOnly, force: false, ignoreFields: [{condition: OnMemberChange, jsonPointers: [/a]}, {condition: OnMemberPresent, jsonPaths: [.b]}]}, manifestConfigs: [{resource: {kind: A}, apply: {force: true}}]}"},
		"values, deep":                  {"{helm: {values: {a: {b: 1, c: [1, 2]}, d: 1}}}", []string{"{helm: {values: {a: {c: [3], e: null}}}}"}, "{helm: {values: {a: {b: 1, c: [3], e: null}, d: 1}}}"},
		"values take shape":             {"{helm: {values: {a: {b: 1}}}}", []string{"{helm: {values: {a: 1}}}"}, "{helm: {values: {a: 1}}}"},
		"template values":               {"{helm: {templateValues: {a: x, b: y}}}", []string{"{helm: {templateValues: {b: z}}}"}, "{helm: {templateValues: {a: x, b: z}}}"},
		"values from":                   {"{helm: {valuesFrom: [{configMapKeyRef: {name: a, key: k}}, {secretKeyRef: {name: a, key: k}}]}}", []string{"{helm: {valuesFrom: [{secretKeyRef: {name: b}}, {configMapKeyRef: {name: a, key: k}}]}}"}, "{helm: {valuesFrom: [{configMapKeyRef: {name: a, key: k}}, {secretKeyRef: {name: a, key: k}}, {secretKeyRef: {name: b}}]}}"},
		"switches stay on":              {"{keepResources: true, helm: {force: true, atomic: true}}", []string{"{keepResources: false, helm: {force: false, waitForJobs: true, takeOwnership: true, disableDNS: true, disablePreProcess: true}}"}, "{keepResources: true, helm: {force: true, atomic: true, waitForJobs: true, takeOwnership: true, disableDNS: true, disablePreProcess: true}}"},
		"timeout":                       {"{helm: {timeoutSeconds: 5}}", []string{"{helm: {timeoutSeconds: 9}}"}, "{helm: {timeoutSeconds: 9}}"},
		"timeout kept":                  {"{helm: {timeoutSeconds: 5}}", []string{"{helm: {}}"}, "{helm: {timeoutSeconds: 5}}"},
		"timeout off":                   {"{helm: {timeoutSeconds: 5}}", []string{"{helm: {timeoutSeconds: -1}}"}, "{helm: {}}"},
		"timeout off in one of several": {"{helm: {timeoutSeconds: 5}}", []string{"{helm: {timeoutSeconds: 7}}", "{helm: {timeoutSeconds: -1}}", "{}"}, "{helm: {}}"},
		"timeout on again":              {"{helm: {timeoutSeconds: 5}}", []string{"{helm: {timeoutSeconds: -1}}", "{helm: {timeoutSeconds: 3}}"}, "{helm: {timeoutSeconds: 3}}"},
		"overlays are appended":         {"{yaml: {overlays: [a]}}", []string{"{yaml: {overlays: [b, a]}}"}, "{yaml: {overlays: [a, b, a]}}"},
		"kustomize":                     {"{}", []string{"{kustomize: {dir: x}}"}, "{kustomize: {dir: x}}"},
		"compare patches":               {"{diff: {comparePatches: [{kind: A, name: a, jsonPointers: [/x]}, {kind: B}]}}", []string{"{diff: {comparePatches: [{kind: A, name: a, jsonPointers: [/y]}, {kind: C}]}}"}, "{diff: {comparePatches: [{kind: A, name: a, jsonPointers: [/y]}, {kind: B}, {kind: C}]}}"},
		"sync generation":               {"{forceSyncGeneration: 3}", []string{"{forceSyncGeneration: 2}"}, "{forceSyncGeneration: 2}"},
		"drift is replaced":             {"{correctDrift: {enabled: true, force: true}}", []string{"{correctDrift: {enabled: true}}"}, "{correctDrift: {enabled: true}}"},
		"downstream resources":          {"{downstreamResources: [{kind: Secret, name: a}]}", []string{"{downstreamResources: [{kind: Secret, name: a}, {kind: ConfigMap, name: a}]}"}, "{downstreamResources: [{kind: Secret, name: a}, {kind: ConfigMap, name: a}]}"},
		"what upstream drops":           {"{}", []string{"{ignore: {conditions: [{type: A}]}, deleteNamespace: true, deleteCRDResources: true, createNamespace: false, helm: {maxHistory: 4, skipSchemaValidation: true}}"}, "{ignore: {conditions: [{type: A}]}, deleteNamespace: true, deleteCRDResources: true, createNamespace: false, helm: {maxHistory: 4, skipSchemaValidation: true}}"},
		"namespace labels by key":       {"{namespaceLabels: {a: '1', b: '1'}, namespaceAnnotations: {x: '1'}}", []string{"{namespaceLabels: {b: '2', c: '2'}, namespaceAnnotations: {y: '2'}}"}, "{namespaceLabels: {a: '1', b: '2', c: '2'}, namespaceAnnotations: {x: '1', y: '2'}}"},
		"made when bundling":            {"{helm: {}}", []string{"{helm: {disableDependencyUpdate: true, valuesFiles: [a.yaml]}}"}, "{helm: {}}"},
		"later layers win":              {"{helm: {values: {a: 1, b: 1, c: 1}}}", []string{"{helm: {values: {a: 2, b: 2}}}", "{helm: {values: {a: 3}}}"}, "{helm: {values: {a: 3, b: 2, c: 1}}}"},
	} {
		t.Run(name, func(t *testing.T) {
			root := decode(t, test.root)
			var layers []fleet.BundleDeploymentOptions
			for _, layer := range test.layers {
				layers = append(layers, decode(t, layer))
			}
			if diff := cmp.Diff(decode(t, test.want), Resolve(root, layers...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(decode(t, test.root), root); diff != "" {
				t.Errorf("the bundle's options were changed: %s", diff)
			}
			for i := range layers {
				if diff := cmp.Diff(decode(t, test.layers[i]), layers[i]); diff != "" {
					t.Errorf("layer %d was changed: %s", i, diff)
				}
			}
		})
	}
}

// Every option a customization can set has an effect, but for the two that have done their work.
func TestNoOptionIsForgotten(t *testing.T) {
	full := decode(t, `
defaultNamespace: a
namespace: a
kustomize: {dir: a}
yaml: {overlays: [a]}
serviceAccount: a
forceSyncGeneration: 1
diff: {comparePatches: [{kind: a}]}
keepResources: true
deleteNamespace: true
ignore: {conditions: [{type: a}]}
correctDrift: {enabled: true}
namespaceLabels: {a: a}
namespaceAnnotations: {a: a}
deleteCRDResources: true
downstreamResources: [{kind: Secret, name: a}]
overwrites: [{kind: a, name: a}]
createNamespace: false
apply: {strategy: CreateOnly}
manifestConfigs: [{resource: {kind: a}}]
helm: {chart: a, repo: a, releaseName: a, version: a, timeoutSeconds: 1, values: {a: a}, templateValues: {a: a}, valuesFrom: [{secretKeyRef: {name: a}}],
  force: true, takeOwnership: true, maxHistory: 1, waitForJobs: true, atomic: true, disablePreProcess: true, disableDNS: true, skipSchemaValidation: true}
`)
	if diff := cmp.Diff(full, Merge(fleet.BundleDeploymentOptions{}, full)); diff != "" {
		t.Error(diff)
	}
	data, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range fieldsOf() {
		if !strings.Contains(string(data), `"`+field+`":`) {
			t.Errorf("option %s is not covered by this test", field)
		}
	}
}

// fieldsOf returns the JSON names of all options that a customization may set and that count when
// deploying.
func fieldsOf() []string {
	var all []string
	for _, kind := range []reflect.Type{reflect.TypeFor[fleet.BundleDeploymentOptions](), reflect.TypeFor[fleet.HelmOptions]()} {
		for i := range kind.NumField() {
			name, _, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			if !slices.Contains([]string{"allowedTargetNamespaceSelector", "valuesFiles", "disableDependencyUpdate"}, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

func FuzzMerge(f *testing.F) {
	for _, seed := range []string{"{}", `{"helm":{"values":{"a":{"b":[1]}},"timeoutSeconds":-3}}`, `{"yaml":{"overlays":["a"]},"diff":{"comparePatches":[{"kind":"A"},{"kind":"A"}]}}`, `{"helm":{"valuesFrom":[{},{"secretKeyRef":null}]}}`} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, base, custom string) {
		var root, layer fleet.BundleDeploymentOptions
		if json.Unmarshal([]byte(base), &root) != nil || json.Unmarshal([]byte(custom), &layer) != nil {
			return
		}
		before, _ := json.Marshal([]any{root, layer})
		once := Resolve(root, layer)
		first, err := json.Marshal(once)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := json.Marshal(Resolve(root, layer)); string(again) != string(first) {
			t.Errorf("two merges differ:\n%s\n%s", first, again)
		}
		if after, _ := json.Marshal([]any{root, layer}); string(after) != string(before) {
			t.Errorf("the arguments were changed:\n%s\n%s", before, after)
		}
		if unchanged, _ := json.Marshal(Merge(root, fleet.BundleDeploymentOptions{})); string(unchanged) != mustJSON(root) {
			t.Errorf("merging nothing changed %s to %s", mustJSON(root), unchanged)
		}
	})
}

func mustJSON(value any) string {
	data, _ := json.Marshal(value)
	return string(data)
}

func TestApplyFor(t *testing.T) {
	options := decode(t, `{apply: {force: false}, manifestConfigs: [
  {resource: {kind: Secret}, apply: {strategy: CreateOnly}},
  {resource: {kind: Secret, namespace: a, name: x}, apply: {strategy: ReadOnly, force: true}},
  {resource: {apiVersion: apps/v1}, conditionRules: [{condition: Ready}]}]}`)
	for name, test := range map[string]struct{ apiVersion, kind, namespace, name, want string }{
		"for all":          {"v1", "ConfigMap", "a", "x", `{"force":false}`},
		"by kind":          {"v1", "Secret", "b", "x", `{"strategy":"CreateOnly","force":false}`},
		"the later wins":   {"v1", "Secret", "a", "x", `{"strategy":"ReadOnly","force":true}`},
		"rules say no how": {"apps/v1", "Deployment", "a", "x", `{"force":false}`},
	} {
		if got := mustJSON(ApplyFor(options, test.apiVersion, test.kind, test.namespace, test.name)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if ApplyFor(decode(t, "{}"), "v1", "Secret", "", "x") != nil {
		t.Error("something is said about how to write where nobody says anything")
	}
	if *options.Apply.Force {
		t.Error("the options were changed")
	}
}
