package bundle_test

import (
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

// What is brought along from outside a bundle's folder is where the renderer looks for it.
func TestReadThenRender(t *testing.T) {
	cm := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n"
	}
	for name, test := range map[string]struct {
		files map[string]string
		// target is the customization that applies, by its index; -1 for none.
		target int
		want   []string
	}{
		"kustomize reaches out": {
			files:  map[string]string{"app/kustomization.yaml": "namePrefix: x-\nresources: [../base, own.yaml]", "app/own.yaml": cm("own"), "base/kustomization.yml": "resources: [cm.yaml]", "base/cm.yaml": cm("base")},
			target: -1, want: []string{"x-base", "x-own"},
		},
		"a customization reaches out": {
			files:  map[string]string{"app/fleet.yaml": "targetCustomizations: [{name: a, clusterName: a, kustomize: {dir: k}}]", "app/k/kustomization.yaml": "resources: [../../base]", "base/kustomization.yaml": "resources: [cm.yaml]", "base/cm.yaml": cm("base")},
			target: 0, want: []string{"base"},
		},
		"manifests beside a build that reaches out": {
			files:  map[string]string{"app/fleet.yaml": "targetCustomizations: [{name: a, clusterName: a, kustomize: {dir: .k}}]", "app/own.yaml": cm("own"), "app/.k/kustomization.yaml": "resources: [../../base]", "base/kustomization.yaml": "resources: [cm.yaml]", "base/cm.yaml": cm("base")},
			target: -1, want: []string{"own"},
		},
		"chart and kustomize reaching out": {
			files:  map[string]string{"app/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0", "app/templates/a.yaml": cm("{{ .Release.Name }}-chart"), "app/kustomization.yaml": "nameSuffix: -s\ncomponents: [../comp]", "comp/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [cm.yaml]", "comp/cm.yaml": cm("comp")},
			target: -1, want: []string{"comp-s", "r-app-chart-s"},
		},
		"chart above the folder": {
			files:  map[string]string{"app/fleet.yaml": "helm: {chart: ../charts/web, values: {a: here}}", "charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0", "charts/web/templates/a.yaml": cm("{{ .Values.a }}")},
			target: -1, want: []string{"here"},
		},
		"chart with a fleet.yaml of its own": {
			files:  map[string]string{"app/fleet.yaml": "helm: {chart: web}", "app/web/fleet.yaml": "{}", "app/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0", "app/web/templates/a.yaml": cm("chart")},
			target: -1, want: []string{"chart"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for name, text := range test.files {
				tree[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
			}
			req := bundle.Request{Name: "r", Paths: []string{"app"}, InlineValues: true}
			result, err := bundle.Read(t.Context(), tree, req, nil)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(result.Bundles, func(b bundle.Bundle) bool { return b.Dir == "app" })
			if diff := cmp.Diff(test.want, rendered(t, result.Bundles[i].Object, test.target)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func rendered(t *testing.T, object *fleet.Bundle, target int) []string {
	t.Helper()
	options := object.Spec.BundleDeploymentOptions
	if target >= 0 {
		options.Kustomize = object.Spec.Targets[target].Kustomize
	}
	input := render.Input{BundleID: object.Name, Manifest: content.Manifest{Resources: object.Spec.Resources}, Options: options}
	objects, err := render.Objects(t.Context(), input, render.Capabilities{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range objects {
		names = append(names, one.GetName())
	}
	slices.Sort(names)
	return names
}
