package options

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOrigins(t *testing.T) {
	root := decode(t, "{defaultNamespace: a, keepResources: true, yaml: {overlays: [x]}, helm: {values: {a: 1, b: {c: 1, d: 1}, e: {}}}}")
	first := decode(t, "{yaml: {overlays: [y]}, helm: {values: {a: 2, b: {c: 2}}}}")
	second := decode(t, "{namespace: n, keepResources: true, helm: {values: {a: 3, e: {f: 1}}}}")
	got, err := Origins(root, first, second)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"defaultNamespace": Root, "keepResources": Root, "namespace": 1,
		"yaml.overlays[0]": Root, "yaml.overlays[1]": 0,
		"helm.values.a": 1, "helm.values.b.c": 0, "helm.values.b.d": Root, "helm.values.e.f": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
