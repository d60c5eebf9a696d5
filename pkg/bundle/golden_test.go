package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

const goldenDir = "testdata/golden"

// goldenCase is a case.yaml: a GitRepo, flattened.
type goldenCase struct {
	GitRepo struct {
		Name, Namespace string
		Labels          map[string]string
		fleet.GitRepoSpec
	} `json:"gitrepo"`
	CLI struct{ Compress bool } `json:"cli"`
}

func (c goldenCase) request() Request {
	repo := &fleet.GitRepo{
		ObjectMeta: metav1.ObjectMeta{Name: c.GitRepo.Name, Namespace: c.GitRepo.Namespace, Labels: c.GitRepo.Labels},
		Spec:       c.GitRepo.GitRepoSpec,
	}
	req := RequestFor(repo, "")
	req.Compress = c.CLI.Compress
	return req
}

// Every recorded repository gives the recorded Bundles, values and content ids.
func TestGoldenBundles(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join(goldenDir, "*", "case.yaml"))
	if err != nil || len(cases) != 24 {
		t.Fatalf("found %d recorded cases, want 24: %v", len(cases), err)
	}
	for _, file := range cases {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			req := readYAML[goldenCase](t, file).request()
			checkBundles(t, dir, req)
			checkValues(t, dir, req)
			checkContentIDs(t, dir, req)
		})
	}
}

func checkBundles(t *testing.T, dir string, req Request) {
	t.Helper()
	req.InlineValues = true
	want := map[string]any{}
	for _, object := range readDocuments(t, filepath.Join(dir, "expected", "bundles.yaml")) {
		want[object["metadata"].(map[string]any)["name"].(string)] = normal(t, object)
	}
	got := map[string]any{}
	for _, bundle := range readGolden(t, dir, req).Bundles {
		got[bundle.Object.Name] = normal(t, asMap(t, bundle.Object))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bundles (-want +got):\n%s", diff)
	}
}

func checkValues(t *testing.T, dir string, req Request) {
	t.Helper()
	type secret struct {
		Type string
		Data map[string]any
	}
	want := map[string]secret{}
	if file := filepath.Join(dir, "expected", "values-secrets.yaml"); exists(file) {
		want = readYAML[map[string]secret](t, file)
	}
	got := map[string]secret{}
	for _, bundle := range readGolden(t, dir, req).Bundles {
		hash := bundle.Object.Spec.ValuesHash
		if bundle.Values == nil {
			if hash != "" {
				t.Errorf("%s: values hash %s without values", bundle.Object.Name, hash)
			}
			continue
		}
		if wantHash, err := content.BundleValuesHash(bundle.Values); err != nil || hash != wantHash {
			t.Errorf("%s: values hash %s, want %s (%v)", bundle.Object.Name, hash, wantHash, err)
		}
		decoded := secret{Type: fleet.BundleValuesSecretType, Data: map[string]any{}}
		for key, data := range bundle.Values {
			var value any
			if err := yaml.Unmarshal(data, &value); err != nil {
				t.Fatal(err)
			}
			decoded.Data[key] = value
		}
		got[bundle.Object.Name] = decoded
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func checkContentIDs(t *testing.T, dir string, req Request) {
	t.Helper()
	ids := readYAML[map[string]map[string]struct{ StagedDeploymentID string }](t, filepath.Join(dir, "expected", "ids.yaml"))
	for _, bundle := range readGolden(t, dir, req).Bundles {
		stored, err := content.Manifest{Resources: bundle.Object.Spec.Resources}.Store()
		if err != nil {
			t.Fatal(err)
		}
		for cluster, id := range ids[bundle.Object.Name] {
			if want, _, _ := strings.Cut(id.StagedDeploymentID, ":"); stored.ID != want {
				t.Errorf("%s on %s: content id %s, want %s", bundle.Object.Name, cluster, stored.ID, want)
			}
		}
		delete(ids, bundle.Object.Name)
	}
	for name, clusters := range ids {
		if len(clusters) > 0 {
			t.Errorf("bundle %s has recorded ids and was not made", name)
		}
	}
}

func readGolden(t *testing.T, dir string, req Request) *Result {
	t.Helper()
	result, err := Read(t.Context(), os.DirFS(filepath.Join(dir, "repo")), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !result.Complete() || len(result.Warnings) > 0 {
		t.Errorf("unmatched %v, warnings %v, want none", result.UnmatchedPaths, result.Warnings)
	}
	return result
}

// normal brings a Bundle to the form that the recordings are compared in: see INDEX.md there.
func normal(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	delete(object, "status")
	spec, _ := object["spec"].(map[string]any)
	if spec["targetCustomizationMode"] == string(fleet.FirstMatch) {
		delete(spec, "targetCustomizationMode")
	}
	prune(spec)
	targets, _ := spec["targets"].([]any)
	for _, target := range targets {
		prune(target.(map[string]any))
	}
	resources, _ := spec["resources"].([]any)
	for _, item := range resources {
		resource := item.(map[string]any)
		if _, packed := resource["content"]; packed && resource["encoding"] == content.EncodingGzip {
			data, err := content.Decode(fleet.BundleResource{Encoding: content.EncodingGzip, Content: resource["content"].(string)})
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(data)
			delete(resource, "content")
			resource["contentSha256"], resource["contentBytes"] = hex.EncodeToString(sum[:]), float64(len(data))
		}
	}
	return object
}

// prune removes what does not count: empty options, and the list of values files.
func prune(options map[string]any) {
	if helm, ok := options["helm"].(map[string]any); ok {
		delete(helm, "valuesFiles")
	}
	for key, value := range options {
		if inner, ok := value.(map[string]any); ok && len(inner) == 0 && !strings.HasSuffix(key, "Selector") {
			delete(options, key)
		}
	}
}

func asMap(t *testing.T, object any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func readYAML[T any](t *testing.T, file string) T {
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

func readDocuments(t *testing.T, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		object := map[string]any{}
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
