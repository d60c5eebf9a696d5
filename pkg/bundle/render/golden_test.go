package render

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

const golden = "../testdata/golden"

// recordedBundle is a Bundle whose compressed files are recorded by digest.
type recordedBundle struct {
	Metadata struct{ Name string }
	Spec     struct {
		Resources []struct {
			fleet.BundleResource
			ContentSha256 string
		}
	}
}

// recording is one bundle on one cluster with the objects that a compatible engine made of it.
type recording struct {
	name  string
	input Input
	want  []map[string]any
}

// Every recorded bundle renders to the recorded objects.
func TestObjectsMatchRecordings(t *testing.T) {
	recordings := readRecordings(t)
	if len(recordings) < 60 {
		t.Fatalf("found %d recordings", len(recordings))
	}
	for _, recorded := range recordings {
		t.Run(recorded.name, func(t *testing.T) {
			objects, err := Objects(t.Context(), recorded.input, Capabilities{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := comparable(objects)
			if diff := cmp.Diff(recorded.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

// comparable brings objects into the form of the recordings.
func comparable(objects []*unstructured.Unstructured) []map[string]any {
	sorted := slices.Clone(objects)
	slices.SortFunc(sorted, func(a, b *unstructured.Unstructured) int {
		key := func(o *unstructured.Unstructured) string {
			return o.GetKind() + "\x00" + o.GetNamespace() + "\x00" + o.GetName()
		}
		return strings.Compare(key(a), key(b))
	})
	result := []map[string]any{}
	for _, object := range sorted {
		result = append(result, normal(object.Object).(map[string]any))
	}
	return result
}

// normal makes all numbers float64 and long texts digests.
func normal(value any) any {
	switch value := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for key, item := range value {
			result[key] = normal(item)
		}
		return result
	case []any:
		result := []any{}
		for _, item := range value {
			result = append(result, normal(item))
		}
		return result
	case int64:
		return float64(value)
	case string:
		if len(value) > 65536 {
			return fmt.Sprintf("sha256:%x bytes:%d", sha256.Sum256([]byte(value)), len(value))
		}
	}
	return value
}

func readRecordings(t testing.TB) []recording {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(golden, "*", "expected", "manifests", "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var recordings []recording
	for _, file := range files {
		bundle := strings.TrimSuffix(filepath.Base(file), ".yaml")
		cluster := filepath.Base(filepath.Dir(file))
		root := strings.Split(file, string(filepath.Separator)+"expected"+string(filepath.Separator))[0]
		deployment := read[struct {
			Options, StagedOptions *fleet.BundleDeploymentOptions
		}](t, filepath.Join(root, "expected", "deployments", cluster, bundle+".yaml"))
		options := deployment.StagedOptions
		if options == nil {
			options = deployment.Options
		}
		if options == nil {
			options = &fleet.BundleDeploymentOptions{}
		}
		want := read[[]map[string]any](t, file)
		if want == nil {
			want = []map[string]any{}
		}
		for i := range want {
			want[i] = normal(want[i]).(map[string]any)
		}
		recordings = append(recordings, recording{
			name:  filepath.Base(root) + "/" + cluster + "/" + bundle,
			input: Input{BundleID: bundle, ManifestID: "s-0", Manifest: recordedManifest(t, root, bundle), Options: *options},
			want:  want,
		})
	}
	return recordings
}

// recordedManifest returns the files of a bundle; those recorded by digest come from the repository.
func recordedManifest(t testing.TB, root, name string) content.Manifest {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "expected", "bundles.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var bundle recordedBundle
		if err := yaml.Unmarshal(document, &bundle); err != nil {
			t.Fatal(err)
		}
		if bundle.Metadata.Name != name {
			continue
		}
		var manifest content.Manifest
		for _, resource := range bundle.Spec.Resources {
			if resource.ContentSha256 == "" {
				manifest.Resources = append(manifest.Resources, resource.BundleResource)
				continue
			}
			encoded, err := content.Encode(resource.Name, fileWithDigest(t, root, resource.ContentSha256), true)
			if err != nil {
				t.Fatal(err)
			}
			manifest.Resources = append(manifest.Resources, encoded)
		}
		return manifest
	}
	t.Fatalf("%s has no bundle %s", root, name)
	return content.Manifest{}
}

func fileWithDigest(t testing.TB, root, digest string) []byte {
	t.Helper()
	var found []byte
	err := filepath.WalkDir(filepath.Join(root, "repo"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if fmt.Sprintf("%x", sha256.Sum256(data)) == digest {
			found = data
		}
		return err
	})
	if err != nil || found == nil {
		t.Fatalf("no file with digest %s: %v", digest, err)
	}
	return found
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
