package manifest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		stream  string
		want    []string
		wantErr bool
	}{
		"nothing":         {"", nil, false},
		"comments only":   {"# a\n---\n# b\n---\n", nil, false},
		"two":             {"apiVersion: v1\nkind: A\nmetadata: {name: x}\n---\napiVersion: g/v1\nkind: B\nmetadata: {name: yy, namespace: ns}\n", []string{"A x", "B.g ns/yy"}, false},
		"a list":          {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: x}}\n- {apiVersion: v1, kind: A, metadata: {name: yy}}\n", []string{"A x", "A yy"}, false},
		"an empty list":   {"apiVersion: v1\nkind: List\nitems: []\n", nil, false},
		"no kind":         {"a: b\n", nil, true},
		"no name":         {"apiVersion: v1\nkind: A\n", nil, true},
		"nameless item":   {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A}\n", nil, true},
		"not YAML":        {"a: [\n", nil, true},
		"text":            {"hello\n", nil, true},
		"JSON":            {`{"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"}}`, []string{"A x"}, false},
		"error in second": {"apiVersion: v1\nkind: A\nmetadata: {name: x}\n---\na: b\n", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Parse([]byte(test.stream))
			if (err != nil) != test.wantErr {
				t.Fatalf("error %v", err)
			}
			var got []string
			for _, object := range objects {
				got = append(got, KeyOf(object).String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" && !test.wantErr {
				t.Error(diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: x}}\n---\n{}"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		objects, err := Parse(stream)
		if err != nil {
			return
		}
		for _, object := range objects {
			if object.GetName() == "" || object.GetKind() == "" {
				t.Errorf("an object without name or kind: %v", object.Object)
			}
			Concede(object)
			Adopt(object, "r", "n")
		}
		total := 0
		for _, phase := range Order(objects) {
			total += len(phase)
		}
		if total != len(objects) {
			t.Errorf("ordering made %d objects of %d", total, len(objects))
		}
	})
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOrder(t *testing.T) {
	kinds := []string{
		"apps/v1 Deployment", "example.com/v1 Jar", "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", "v1 Secret",
		"v1 ConfigMap", "v1 Namespace", "apiextensions.k8s.io/v1 CustomResourceDefinition", "v1 ConfigMap",
	}
	var objects []*unstructured.Unstructured
	for i, kind := range kinds {
		var version, word string
		for at := range kind {
			if kind[at] == ' ' {
				version, word = kind[:at], kind[at+1:]
			}
		}
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetAPIVersion(version)
		o.SetKind(word)
		o.SetName(string(rune('a' + i)))
		objects = append(objects, o)
	}
	var got [][]string
	for _, phase := range Order(objects) {
		var names []string
		for _, o := range phase {
			names = append(names, o.GetKind()+" "+o.GetName())
		}
		got = append(got, names)
	}
	want := [][]string{
		{"CustomResourceDefinition g"}, {"Namespace f"}, {"Secret d"}, {"ConfigMap e", "ConfigMap h"}, {"Deployment a"}, {"Jar b"},
		{"ValidatingWebhookConfiguration c"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConcede(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"status goes": {
			"apiVersion: v1\nkind: A\nmetadata: {name: x, creationTimestamp: null}\nstatus: {a: 1}",
			"apiVersion: v1\nkind: A\nmetadata: {name: x}",
		},
		"rules of an aggregated role": {
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\naggregationRule: {}\nrules: []",
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\naggregationRule: {}",
		},
		"rules of an ordinary role": {
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\nrules: []",
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\nrules: []",
		},
		"placeholder of an authority": {
			"apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: x}\nwebhooks: [{name: w, clientConfig: {caBundle: Cg==, url: u}}]",
			"apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: x}\nwebhooks: [{name: w, clientConfig: {url: u}}]",
		},
		"a real authority": {
			"apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: x}\nspec: {caBundle: QUJD}",
			"apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: x}\nspec: {caBundle: QUJD}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := object(t, test.before)
			Concede(got)
			if diff := cmp.Diff(object(t, test.after).Object, got.Object); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDefinitions(t *testing.T) {
	crd := object(t, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: jars.e.com}\nspec: {group: e.com, scope: Cluster, names: {kind: Jar, plural: jars}, versions: [{name: v1}, {name: v2}]}")
	kinds := Definitions([]*unstructured.Unstructured{crd})
	if len(kinds) != 2 {
		t.Fatalf("got %v", kinds)
	}
	for kind, defined := range kinds {
		if defined.Resource != "jars" || defined.Namespaced || defined.Version != kind.Version {
			t.Errorf("%v: %+v", kind, defined)
		}
	}
}
