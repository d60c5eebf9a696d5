package content

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const golden = "../bundle/testdata/golden"

type wantIDs map[string]map[string]struct{ StagedDeploymentID string }

// Every id that a live hub of upstream's gave is reproduced from the recorded bundle and options.
func TestDeploymentIDsAreUpstreams(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join(golden, "*", "expected", "ids.yaml"))
	if err != nil || len(cases) < 20 {
		t.Fatalf("found %d recorded cases: %v", len(cases), err)
	}
	checked := 0
	for _, file := range cases {
		dir := filepath.Dir(file)
		ids := read[wantIDs](t, file)
		bundles := readBundles(t, filepath.Join(dir, "bundles.yaml"))
		for bundle, clusters := range ids {
			resources := bundles[bundle].Spec.Resources
			for cluster, want := range clusters {
				deployment := filepath.Join(dir, "deployments", cluster, bundle+".yaml")
				checkID(t, deployment, resources, want.StagedDeploymentID)
				checked++
			}
		}
	}
	if checked < 70 {
		t.Errorf("checked %d ids, want all 71", checked)
	}
}

func checkID(t *testing.T, deployment string, resources []fleet.BundleResource, want string) {
	t.Helper()
	recorded := read[struct {
		Options, StagedOptions *fleet.BundleDeploymentOptions
	}](t, deployment)
	options := recorded.StagedOptions
	if options == nil {
		options = recorded.Options
	}
	// The recording leaves out what is empty; the engine it was taken from fills Helm's options in.
	switch {
	case options.Helm == nil:
		options.Helm = &fleet.HelmOptions{}
	case options.Helm.Values == nil:
		options.Helm.Values = &fleet.GenericMap{Data: map[string]any{}}
	}
	manifest := manifestID(t, resources)
	if manifest == "" {
		manifest, _, _ = strings.Cut(want, ":")
	}
	got, err := DeploymentID(manifest, *options)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%s:\n got %s\nwant %s", deployment, got, want)
	}
}

// manifestID returns the manifest's id, or "" when the recording holds digests instead of some contents.
func manifestID(t *testing.T, resources []fleet.BundleResource) string {
	t.Helper()
	for _, resource := range resources {
		if resource.Encoding != "" {
			return ""
		}
	}
	stored, err := Manifest{Resources: resources}.Store()
	if err != nil {
		t.Fatal(err)
	}
	return stored.ID
}

func TestEncode(t *testing.T) {
	for name, test := range map[string]struct {
		data     []byte
		compress bool
		want     string
	}{
		"text":            {[]byte("a: b\n"), false, ""},
		"text compressed": {[]byte("a: b\n"), true, EncodingGzip},
		"binary":          {[]byte{0xff, 0x00, 0xfe}, false, EncodingGzip},
		"empty":           {nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			resource, err := Encode("f", test.data, test.compress)
			if err != nil {
				t.Fatal(err)
			}
			if resource.Encoding != test.want {
				t.Errorf("encoding %q, want %q", resource.Encoding, test.want)
			}
			back, err := Decode(resource)
			if err != nil || !bytes.Equal(back, test.data) {
				t.Errorf("decoded %q, %v, want %q", back, err, test.data)
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	pieces, err := pack(func(to io.Writer) error {
		_, err := to.Write(make([]byte, MaxFile+1))
		return err
	}, MaxFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(pieces[0], MaxFile); !errors.Is(err, ErrTooLarge) {
		t.Errorf("unpacking a bomb: %v, want ErrTooLarge", err)
	}
	for name, resource := range map[string]fleet.BundleResource{
		"unknown encoding": {Name: "f", Encoding: "rot13"},
		"not base64":       {Name: "f", Encoding: EncodingGzip, Content: "!"},
		"not gzip":         {Name: "f", Encoding: EncodingGzip, Content: "YWJj"},
	} {
		if _, err := Decode(resource); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func read[T any](t *testing.T, file string) T {
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

func readBundles(t *testing.T, file string) map[string]fleet.Bundle {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bundles := map[string]fleet.Bundle{}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var bundle fleet.Bundle
		if err := yaml.Unmarshal(document, &bundle); err != nil {
			t.Fatal(err)
		}
		bundles[bundle.Name] = bundle
	}
	return bundles
}

// What is only looked at does not deploy anew; how objects are written does.
func TestWhatMovesAnID(t *testing.T) {
	jar := fleet.ResourceSelector{Kind: "Jar"}
	rules := []fleet.ConditionRule{{Expression: "true"}}
	id := func(options fleet.BundleDeploymentOptions) string {
		t.Helper()
		made, err := DeploymentID("s-x", options)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	plain := id(fleet.BundleDeploymentOptions{})
	for name, options := range map[string]fleet.BundleDeploymentOptions{
		"comparePatches": {Diff: &fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{{Kind: "Jar"}}}},
		"correctDrift":   {CorrectDrift: &fleet.CorrectDrift{Enabled: true}},
		"rules":          {ManifestConfigs: []fleet.ManifestConfig{{Resource: jar, ConditionRules: rules}}},
	} {
		if id(options) != plain {
			t.Errorf("%s moves the id", name)
		}
	}
	readOnly := &fleet.ApplyOptions{Strategy: fleet.ApplyReadOnly}
	withRules := fleet.BundleDeploymentOptions{ManifestConfigs: []fleet.ManifestConfig{{Resource: jar, Apply: readOnly, ConditionRules: rules}}}
	if id(withRules) == plain || id(fleet.BundleDeploymentOptions{Apply: readOnly}) == plain {
		t.Error("a strategy does not move the id")
	}
	if id(withRules) != id(fleet.BundleDeploymentOptions{ManifestConfigs: []fleet.ManifestConfig{{Resource: jar, Apply: readOnly}}}) {
		t.Error("rules beside a strategy move the id")
	}
	if len(withRules.ManifestConfigs[0].ConditionRules) != 1 {
		t.Error("the options were changed")
	}
}

// The manifest's JSON is written file by file, and is what encoding/json makes of it.
func TestStoreIsJSON(t *testing.T) {
	packed, err := Encode("a", bytes.Repeat([]byte("text "), 1000), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, resources := range [][]fleet.BundleResource{
		nil, {}, {{}}, {{Name: "a", Content: "<b> & \u2028 \x00 \xff\n"}}, {packed}, {packed, {Name: `"content":"H4sI`, Content: "H4sIabc", Encoding: EncodingGzip}, packed},
		{{Name: "H4sI", Content: "H4sI<"}, {Content: "H4sI"}, {Name: "x", Encoding: EncodingGzip}},
	} {
		want, err := json.Marshal(Manifest{Resources: resources})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Manifest{Resources: resources}.Store()
		if err != nil {
			t.Fatal(err)
		}
		text, err := got.JSON()
		if digest := sum(text); err != nil || string(text) != string(want)+"\n" || got.Size != len(text) || got.Digest != digest {
			t.Errorf("got %s, %v, %+v, want %s", text, err, got, want)
		}
	}
}
