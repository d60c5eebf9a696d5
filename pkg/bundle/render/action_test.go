package render

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/manifest"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// install runs Helm's install action on a release without a cluster.
func install(t testing.TB, release *Release) (*helmrelease.Release, error) {
	t.Helper()
	version, err := chartutil.ParseKubeVersion(DefaultKubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	install.ClientOnly, install.DryRun, install.Replace = true, true, true
	install.KubeVersion = version
	install.ReleaseName, install.Namespace = release.Name, release.Namespace
	install.PostRenderer = release.PostRenderer
	install.SkipSchemaValidation = release.SkipSchemaValidation
	return install.RunWithContext(t.Context(), release.Chart, release.Values)
}

// What the agent deploys through Helm is what hub and command line look at, in the same order.
func TestHelmInstallsWhatObjectsReturns(t *testing.T) {
	for _, recorded := range readRecordings(t) {
		t.Run(recorded.name, func(t *testing.T) {
			want, err := Objects(t.Context(), recorded.input, Capabilities{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			marks := Marks{AgentNamespace: "agent-ns", AgentScope: "scope"}
			release, err := Build(t.Context(), recorded.input, marks, nil)
			if err != nil {
				t.Fatal(err)
			}
			installed, err := install(t, release)
			if err != nil {
				t.Fatal(err)
			}
			objects := parse(t, installed.Manifest)
			checkMarks(t, objects, names.ObjectSet(recorded.input.BundleID, "scope"))
			for _, hook := range installed.Hooks {
				found := parse(t, hook.Manifest)
				if err := release.Place(found...); err != nil {
					t.Fatal(err)
				}
				objects = append(objects, found...)
			}
			if diff := cmp.Diff(fields(want), fields(objects)); diff != "" {
				t.Errorf("installed (-offline +installed):\n%s", diff)
			}
			checkAnnotations(t, installed.Chart, recorded.input, marks)
		})
	}
}

func checkAnnotations(t *testing.T, installed *chart.Chart, in Input, marks Marks) {
	t.Helper()
	annotations := installed.Metadata.Annotations
	keep := "false"
	if in.Options.KeepResources {
		keep = "true"
	}
	for key, want := range map[string]string{
		fleet.ReleaseBundleIDAnnotation:       in.BundleID,
		fleet.ReleaseCommitAnnotation:         in.Commit,
		fleet.ReleaseAgentNamespaceAnnotation: marks.AgentNamespace,
		fleet.ReleaseServiceAccountAnnotation: in.Options.ServiceAccount,
		fleet.ReleaseKeepResourcesAnnotation:  keep,
	} {
		if got, ok := annotations[key]; !ok || got != want {
			t.Errorf("chart annotation %s = %q, %v, want %q", key, got, ok, want)
		}
	}
}

// checkMarks finds the marks on every object and takes them off.
func checkMarks(t *testing.T, objects []*unstructured.Unstructured, set string) {
	t.Helper()
	for _, object := range objects {
		labels, annotations := object.GetLabels(), object.GetAnnotations()
		if labels[fleet.SetHashLabel] != names.ObjectSetHash(set) || annotations[fleet.SetIDAnnotation] != set {
			t.Errorf("%s %s has labels %v and annotations %v", object.GetKind(), object.GetName(), labels, annotations)
		}
		drop(object, "labels", fleet.SetHashLabel)
		drop(object, "annotations", fleet.SetIDAnnotation)
	}
}

func drop(object *unstructured.Unstructured, field, key string) {
	unstructured.RemoveNestedField(object.Object, "metadata", field, key)
	if rest, _, _ := unstructured.NestedMap(object.Object, "metadata", field); len(rest) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
}

func parse(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	found, err := manifest.Parse("manifest", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, object := range found {
		objects = append(objects, object.Unstructured)
	}
	return objects
}

// fields drops what carries no meaning: empty labels and annotations.
func fields(objects []*unstructured.Unstructured) []any {
	var result []any
	for _, object := range objects {
		copied := object.DeepCopy()
		drop(copied, "labels", "")
		drop(copied, "annotations", "")
		result = append(result, normal(copied.Object))
	}
	return result
}

// The class of a post-renderer's error survives Helm's wrapping.
func TestErrorThroughHelm(t *testing.T) {
	in := raw("apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n")
	in.Options.TargetNamespace = "forced"
	release, err := Build(t.Context(), in, Marks{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = install(t, release)
	if fault.ClassOf(err) != fault.Stalled || fault.ReasonOf(err) != ReasonRenderFailed {
		t.Errorf("error %v has class %s and reason %s", err, fault.ClassOf(err), fault.ReasonOf(err))
	}
}

func TestObjectsEndWithTheContext(t *testing.T) {
	long := chartOf(map[string]string{"templates/a.yaml": "{{ range until 2000 }}{{ range until 300 }}{{ end }}{{ end }}"})
	for name, end := range map[string]func(cancel func()){
		"before":    func(cancel func()) { cancel() },
		"meanwhile": func(cancel func()) { go cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			end(cancel)
			_, err := Objects(ctx, long, Capabilities{}, nil)
			if !errors.Is(err, context.Canceled) || fault.ClassOf(err) != fault.Transient {
				t.Errorf("error %v of class %s", err, fault.ClassOf(err))
			}
		})
	}
}
