package charts_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/bundle/charts"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// repo makes a tree of files.
func repo(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return out
}

// chartArchive packs files as Helm does.
func chartArchive(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := packed.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := packed.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// fakeCharts answers from a map and remembers what it was asked.
type fakeCharts struct {
	archives map[string]*charts.Chart
	asked    []string
}

func (f *fakeCharts) Fetch(_ context.Context, ref charts.Ref) (*charts.Chart, error) {
	key := fmt.Sprintf("%s %s %s", ref.Repo, ref.Chart, ref.Version)
	f.asked = append(f.asked, key)
	if chart := f.archives[key]; chart != nil {
		return chart, nil
	}
	return nil, fault.New(fault.Transient, "Unreachable", "no such chart: %s", key)
}

func TestReadCharts(t *testing.T) {
	web := chartArchive(t, map[string]string{"web/Chart.yaml": "name: web\nversion: 1.2.3", "web/templates/a.yaml": "a: 1"})
	old := chartArchive(t, map[string]string{"web/Chart.yaml": "name: web\nversion: 1.0.0\ndependencies: [{name: dep, version: ^2, repository: oci://r.test/c}]"})
	dep := chartArchive(t, map[string]string{"dep/Chart.yaml": "name: dep\nversion: 2.1.0"})
	source := &fakeCharts{archives: map[string]*charts.Chart{
		"https://c.test web ~1":       {Name: "web", Version: "1.2.3", Archive: web},
		"https://c.test web 1.0.0":    {Name: "web", Version: "1.0.0", Archive: old},
		"oci://r.test/c dep ^2":       {Name: "dep", Version: "2.1.0", Archive: dep},
		"https://c.test locked 3.0.1": {Name: "locked", Version: "3.0.1", Archive: dep},
	}}
	files := repo(map[string]string{
		"app/fleet.yaml":              "helm: {repo: 'https://c.test', chart: web, version: ~1}\ntargetCustomizations:\n- {name: old, clusterName: o, helm: {version: 1.0.0}}\n- {name: same, clusterName: s, helm: {values: {a: 1}}}",
		"own/Chart.yaml":              "name: own\nversion: 0.1.0\ndependencies:\n- {name: locked, version: ^3, repository: 'https://c.test'}\n- {name: lib, version: '*', repository: 'file://../lib'}\n- {name: here, version: '1', repository: 'https://c.test'}\n- {name: packed, version: '1', repository: 'https://c.test'}\n- {name: elsewhere, version: '1'}",
		"own/charts/dir/Chart.yaml":   "name: elsewhere\nversion: 1.0.0",
		"own/Chart.lock":              "dependencies: [{name: locked, version: 3.0.1, repository: 'https://c.test'}]",
		"own/charts/here/x":           "x",
		"own/charts/packed-1.0.0.tgz": "x",
		"lib/Chart.yaml":              "name: lib\nversion: 1.0.0\ndependencies: [{name: deeper, repository: 'file://../deeper'}]",
		"deeper/Chart.yaml":           "name: deeper\nversion: 1.0.0",
	})
	result, err := bundle.Read(t.Context(), files, bundle.Request{Name: "r", Paths: []string{"app", "own"}}, source)
	if err != nil {
		t.Fatal(err)
	}
	newest := charts.Folder(&fleet.HelmOptions{Repo: "https://c.test", Chart: "web", Version: "~1"})
	oldest := charts.Folder(&fleet.HelmOptions{Repo: "https://c.test", Chart: "web", Version: "1.0.0"})
	want := map[string][]string{
		"r-app": {newest + "/web/Chart.yaml", newest + "/web/templates/a.yaml", oldest + "/web/Chart.yaml", oldest + "/web/charts/dep-2.1.0.tgz"},
		"r-own": {"Chart.lock", "Chart.yaml", "charts/dir/Chart.yaml", "charts/here/x", "charts/lib/Chart.yaml", "charts/lib/charts/deeper/Chart.yaml", "charts/locked-3.0.1.tgz", "charts/packed-1.0.0.tgz"},
	}
	slices.Sort(want["r-app"])
	got := map[string][]string{}
	for _, b := range result.Bundles {
		for _, resource := range b.Object.Spec.Resources {
			got[b.Object.Name] = append(got[b.Object.Name], resource.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	slices.Sort(source.asked)
	wantAsked := slices.Sorted(maps.Keys(source.archives))
	if diff := cmp.Diff(wantAsked, source.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// A chart that cannot be reached now is a failure to retry, not one for a person.
func TestReadChartUnreachable(t *testing.T) {
	files := repo(map[string]string{"app/fleet.yaml": "helm: {repo: 'https://c.test', chart: web}"})
	result, err := bundle.Read(t.Context(), files, bundle.Request{Name: "r"}, &fakeCharts{})
	if fault.ClassOf(err) != fault.Transient || result == nil || len(result.Failed) != 1 {
		t.Errorf("got %v, %v, want one transient failure", result, err)
	}
	loop := repo(map[string]string{
		"a/Chart.yaml": "name: a\nversion: 1.0.0\ndependencies: [{name: b, repository: 'file://../b'}]",
		"b/Chart.yaml": "name: b\nversion: 1.0.0\ndependencies: [{name: a, repository: 'file://../a'}]",
	})
	if _, err := bundle.Read(t.Context(), loop, bundle.Request{Name: "r", Paths: []string{"a"}}, nil); fault.ReasonOf(err) != charts.ReasonUnavailable || !strings.Contains(err.Error(), "circles") {
		t.Errorf("charts in circles: %v", err)
	}
}
