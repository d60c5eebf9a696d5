package target

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

const golden = "../bundle/testdata/golden"

// goldenCase is a recorded case: what went in, and what upstream's engine made of it.
type goldenCase struct {
	dir      string
	clusters []ClusterInfo
	groups   []fleet.ClusterGroup
	bundles  []fleet.Bundle
	ids      map[string]map[string]goldenIDs
}

type goldenIDs struct {
	DeploymentID, StagedDeploymentID, ValuesHash, Namespace string
}

func goldenCases(t testing.TB) []goldenCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(golden, "*", "case.yaml"))
	if err != nil || len(files) != 24 {
		t.Fatalf("found %d recorded cases, want 24: %v", len(files), err)
	}
	cases := make([]goldenCase, 0, len(files))
	for _, file := range files {
		cases = append(cases, readCase(t, filepath.Dir(file)))
	}
	return cases
}

func readCase(t testing.TB, dir string) goldenCase {
	t.Helper()
	input := read[struct {
		Clusters []struct {
			Name                string
			Labels, Annotations map[string]string
			TemplateValues      *fleet.GenericMap
		}
		ClusterGroups []struct {
			Name     string
			Labels   map[string]string
			Selector *metav1.LabelSelector
		}
	}](t, filepath.Join(dir, "case.yaml"))
	c := goldenCase{dir: dir, ids: read[map[string]map[string]goldenIDs](t, filepath.Join(dir, "expected", "ids.yaml"))}
	for _, cluster := range input.Clusters {
		c.clusters = append(c.clusters, ClusterInfo{
			Namespace: "golden-ws", Name: cluster.Name, Labels: cluster.Labels, Annotations: cluster.Annotations,
			TemplateValues:      cluster.TemplateValues,
			DeploymentNamespace: names.ClusterNamespace("golden-ws", cluster.Name),
		})
	}
	for _, group := range input.ClusterGroups {
		object := fleet.ClusterGroup{Spec: fleet.ClusterGroupSpec{Selector: group.Selector}}
		object.Namespace, object.Name, object.Labels = "golden-ws", group.Name, group.Labels
		c.groups = append(c.groups, object)
	}
	data, err := os.ReadFile(filepath.Join(dir, "expected", "bundles.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var bundle fleet.Bundle
		if err := yaml.Unmarshal(document, &bundle); err != nil {
			t.Fatal(err)
		}
		c.bundles = append(c.bundles, dropValuesFiles(bundle))
	}
	return c
}

// dropValuesFiles does what happens when a bundle is stored: the list has done its work.
func dropValuesFiles(bundle fleet.Bundle) fleet.Bundle {
	if bundle.Spec.Helm != nil {
		bundle.Spec.Helm.ValuesFiles = nil
	}
	for i := range bundle.Spec.Targets {
		if helm := bundle.Spec.Targets[i].Helm; helm != nil {
			helm.ValuesFiles = nil
		}
	}
	return bundle
}

// manifestID computes the content's id, or takes it from the recording when that holds digests of files.
func (c goldenCase) manifestID(t testing.TB, bundle *fleet.Bundle) string {
	t.Helper()
	for _, resource := range bundle.Spec.Resources {
		if resource.Encoding == "" {
			continue
		}
		for _, ids := range c.ids[bundle.Name] {
			id, _, _ := strings.Cut(ids.StagedDeploymentID, ":")
			return id
		}
	}
	stored, err := content.Manifest{Resources: bundle.Spec.Resources}.Store()
	if err != nil {
		t.Fatal(err)
	}
	return stored.ID
}

func (c goldenCase) snapshot(t testing.TB, bundle *fleet.Bundle) Snapshot {
	return Snapshot{
		Bundle: bundle, ManifestID: c.manifestID(t, bundle), Clusters: c.clusters, Groups: c.groups,
		Finalizers: []string{fleet.BundleDeploymentFinalizer},
	}
}

func read[T any](t testing.TB, file string) T {
	t.Helper()
	var value T
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &value); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return value
}

// Every recorded deployment is planned as upstream made it: labels, options with values, ids, hash of the
// values, and nothing where there was none.
func TestGoldenDeployments(t *testing.T) {
	compared, ids := 0, 0
	for _, c := range goldenCases(t) {
		t.Run(filepath.Base(c.dir), func(t *testing.T) {
			for i := range c.bundles {
				// Without its strategy the bundle reaches all clusters in one pass.
				bundle := c.bundles[i].DeepCopy()
				bundle.Spec.RolloutStrategy = nil
				plan, err := NewPlan(c.snapshot(t, bundle))
				if err != nil {
					t.Fatal(err)
				}
				made := map[string]Deployment{}
				for _, deployment := range plan.Create {
					made[deployment.Object.Labels[fleet.ClusterLabel]] = deployment
				}
				for _, cluster := range c.clusters {
					file := filepath.Join(c.dir, "expected", "deployments", cluster.Name, bundle.Name+".yaml")
					compareDeployment(t, file, made[cluster.Name])
					compared++
					if want, recorded := c.ids[bundle.Name][cluster.Name]; recorded {
						compareIDs(t, want, made[cluster.Name])
						ids++
					}
				}
			}
		})
	}
	t.Logf("compared %d deployments and %d sets of ids", compared, ids)
	if compared < 70 || ids < 70 {
		t.Errorf("compared %d deployments and %d sets of ids, want all", compared, ids)
	}
}

type recordedDeployment struct {
	None                   bool `json:"-"`
	Labels                 map[string]string
	Options, StagedOptions map[string]any
	Promoted, Paused       bool
	DependsOn              []fleet.BundleRef
	CorrectDrift           *fleet.CorrectDrift
}

func readDeployment(t *testing.T, file string) recordedDeployment {
	t.Helper()
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || strings.TrimSpace(string(data)) == "none" {
		return recordedDeployment{None: true}
	}
	return read[recordedDeployment](t, file)
}

func compareDeployment(t *testing.T, file string, got Deployment) {
	t.Helper()
	want := readDeployment(t, file)
	if want.None || got.Object == nil {
		if want.None != (got.Object == nil) {
			t.Errorf("%s: recorded none: %v, planned none: %v", file, want.None, got.Object == nil)
		}
		return
	}
	spec := got.Object.Spec
	labels := got.Object.Labels
	if labels[fleet.ContentLabel] == "" {
		t.Errorf("%s: no content label", file)
	}
	delete(labels, fleet.ContentLabel)
	staged := spec.StagedOptions
	if want.StagedOptions == nil {
		want.StagedOptions = want.Options
	}
	for what, pair := range map[string][2]any{
		"labels":         {want.Labels, labels},
		"paused":         {want.Paused, spec.Paused},
		"promoted":       {want.Promoted, spec.DeploymentID != "" && spec.DeploymentID == spec.StagedDeploymentID},
		"dependsOn":      {want.DependsOn, spec.DependsOn},
		"correctDrift":   {want.CorrectDrift, spec.CorrectDrift},
		"options":        {comparable(want.Options), comparable(withValues(t, spec.Options, got.Values[ValuesKey]))},
		"staged options": {comparable(want.StagedOptions), comparable(withValues(t, staged, got.Values[StagedValuesKey]))},
		"finalizers":     {[]string{fleet.BundleDeploymentFinalizer}, got.Object.Finalizers},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", file, what, diff)
		}
	}
}

func withValues(t *testing.T, options fleet.BundleDeploymentOptions, values []byte) map[string]any {
	t.Helper()
	if options.Helm != nil && options.Helm.Values != nil {
		t.Error("values are in the options, want them in the Secret only")
	}
	data, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	if len(values) > 0 {
		var decoded map[string]any
		if err := json.Unmarshal(values, &decoded); err != nil {
			t.Fatal(err)
		}
		tree["helm"].(map[string]any)["values"] = decoded
	}
	return tree
}

// comparable drops what is empty outside of values and selectors: it means the same as absent.
func comparable(tree map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range tree {
		if below, isMap := value.(map[string]any); isMap && key != "values" && !strings.HasSuffix(strings.ToLower(key), "selector") {
			value = comparable(below)
			if len(value.(map[string]any)) == 0 {
				continue
			}
		}
		out[key] = value
	}
	return out
}

func compareIDs(t *testing.T, want goldenIDs, got Deployment) {
	t.Helper()
	if got.Object == nil {
		t.Errorf("no deployment for %+v", want)
		return
	}
	spec := got.Object.Spec
	is := goldenIDs{spec.DeploymentID, spec.StagedDeploymentID, spec.ValuesHash, got.Object.Namespace}
	if diff := cmp.Diff(want, is); diff != "" {
		t.Errorf("ids of %s on %s (-want +got):\n%s", got.Object.Name, got.Cluster, diff)
	}
}

// The first pass of a rollout creates what upstream's does, with its partitions and limits.
func TestGoldenRollout(t *testing.T) {
	type recorded struct {
		FirstPass, Targeted []string
		MaxUnavailable      int
		Partitions          []fleet.PartitionStatus
	}
	found := 0
	for _, c := range goldenCases(t) {
		file := filepath.Join(c.dir, "expected", "rollout.yaml")
		if _, err := os.Stat(file); err != nil {
			continue
		}
		for name, want := range read[map[string]recorded](t, file) {
			for i := range c.bundles {
				if c.bundles[i].Name != name {
					continue
				}
				found++
				plan, err := NewPlan(c.snapshot(t, &c.bundles[i]))
				if err != nil {
					t.Fatal(err)
				}
				got := recorded{MaxUnavailable: plan.MaxUnavailable}
				for _, deployment := range plan.Create {
					got.FirstPass = append(got.FirstPass, deployment.Object.Labels[fleet.ClusterLabel])
				}
				for _, part := range plan.Partitions {
					got.Partitions = append(got.Partitions, fleet.PartitionStatus{Name: part.Name, Count: part.Count, MaxUnavailable: part.MaxUnavailable})
				}
				got.Targeted = want.Targeted
				if plan.Targets != len(want.Targeted) {
					t.Errorf("%s: %d targets, want %v", name, plan.Targets, want.Targeted)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no recorded rollout found")
	}
}
