package cli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

const (
	goldenDir       = "../bundle/testdata/golden"
	goldenNamespace = "golden-ws"
)

// goldenCase is a case.yaml.
type goldenCase struct {
	GitRepo struct {
		Name, Namespace string
		Labels          map[string]string
		fleet.GitRepoSpec
	} `json:"gitrepo"`
	Clusters []struct {
		Name                string
		Labels, Annotations map[string]string
		TemplateValues      map[string]any
	}
	ClusterGroups []struct {
		Name     string
		Labels   map[string]string
		Selector map[string]any
	}
	CLI struct{ Compress bool } `json:"cli"`
}

// Every recorded repository gives the recorded Bundles, deployments and objects through the commands, with
// no kubeconfig and no home.
func TestGoldenCommands(t *testing.T) {
	offline(t)
	root, err := filepath.Abs(goldenDir)
	if err != nil {
		t.Fatal(err)
	}
	cases, err := filepath.Glob(filepath.Join(root, "*", "case.yaml"))
	if err != nil || len(cases) != 24 {
		t.Fatalf("found %d recorded cases, want 24: %v", len(cases), err)
	}
	for _, file := range cases {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			checkCase(t, filepath.Dir(file), readYAML[goldenCase](t, file))
		})
	}
}

func checkCase(t *testing.T, dir string, recorded goldenCase) {
	expected := filepath.Join(dir, "expected")
	work := t.TempDir()
	t.Chdir(filepath.Join(dir, "repo"))
	printed := mustRun(t, recorded.applyArgs(t, work)...)
	bundles := documents(t, printed)
	if diff := cmp.Diff(byName(t, recordedDocuments(t, filepath.Join(expected, "bundles.yaml"))), byName(t, bundles)); diff != "" {
		t.Errorf("apply (-want +got):\n%s", diff)
	}
	clusters := recorded.clustersFile(t, work)
	checkedFiles := 0
	for _, bundle := range bundles {
		name := nameOf(bundle)
		first := runTarget(t, work, clusters, bundle)
		checkFirstPass(t, expected, name, first)
		delete(bundle["spec"].(map[string]any), "rolloutStrategy")
		all := runTarget(t, work, clusters, bundle)
		for _, cluster := range recorded.Clusters {
			want := filepath.Join(expected, "deployments", cluster.Name, name+".yaml")
			checkDeployment(t, want, all.deployments[cluster.Name])
			checkObjects(t, work, filepath.Join(expected, "manifests", cluster.Name, name+".yaml"), all, cluster.Name)
			checkedFiles++
		}
	}
	if want, _ := filepath.Glob(filepath.Join(expected, "deployments", "*", "*.yaml")); len(want) != checkedFiles {
		t.Errorf("checked %d deployments, %d are recorded", checkedFiles, len(want))
	}
}

// applyArgs is the command that the recording was made with.
func (c goldenCase) applyArgs(t *testing.T, work string) []string {
	t.Helper()
	targets := c.GitRepo.Targets
	if len(targets) == 0 {
		targets = []fleet.ClusterTarget{{Name: "default", ClusterGroup: "default"}}
	}
	file := writeYAML(t, work, "targets.json", map[string]any{"targets": targets, "targetRestrictions": targets})
	spec := c.GitRepo.GitRepoSpec
	args := []string{
		"apply", "--targets-file=" + file, "--namespace", c.GitRepo.Namespace,
		"--label=" + fleet.RepoLabel + "=" + c.GitRepo.Name,
		"--service-account", spec.ServiceAccount, "--sync-generation=" + strconv.FormatInt(spec.ForceSyncGeneration, 10),
		"--paused=" + strconv.FormatBool(spec.Paused), "--target-namespace", spec.TargetNamespace,
		"--bundle-creation-max-concurrency", "1", "-o", "-",
	}
	for key, value := range c.GitRepo.Labels {
		args = append(args, "--label="+key+"="+value)
	}
	for flag, on := range map[string]bool{
		"--keep-resources": spec.KeepResources, "--compress": c.CLI.Compress,
		"--correct-drift":       spec.CorrectDrift != nil && spec.CorrectDrift.Enabled,
		"--correct-drift-force": spec.CorrectDrift != nil && spec.CorrectDrift.Force,
		"--driven-scan":         len(spec.Bundles) > 0,
	} {
		if on {
			args = append(args, flag)
		}
	}
	args = append(args, "--", c.GitRepo.Name)
	for _, entry := range spec.Bundles {
		args = append(args, strings.TrimSuffix(entry.Base+":"+entry.Options, ":"))
	}
	return append(args, spec.Paths...)
}

func (c goldenCase) clustersFile(t *testing.T, work string) string {
	t.Helper()
	items := []any{}
	for _, cluster := range c.Clusters {
		items = append(items, map[string]any{
			"apiVersion": "fleet.cattle.io/v1alpha1", "kind": "Cluster",
			"metadata": map[string]any{"name": cluster.Name, "namespace": goldenNamespace, "labels": cluster.Labels, "annotations": cluster.Annotations},
			"spec":     map[string]any{"templateValues": cluster.TemplateValues},
		})
	}
	for _, group := range c.ClusterGroups {
		items = append(items, map[string]any{
			"apiVersion": "fleet.cattle.io/v1alpha1", "kind": "ClusterGroup",
			"metadata": map[string]any{"name": group.Name, "namespace": goldenNamespace, "labels": group.Labels},
			"spec":     map[string]any{"selector": group.Selector},
		})
	}
	return writeYAML(t, work, "clusters.yaml", map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}

// targeted is what `fleet target` printed.
type targeted struct {
	content     map[string]any
	deployments map[string]map[string]any
}

func runTarget(t *testing.T, work, clusters string, bundle map[string]any) targeted {
	t.Helper()
	file := writeYAML(t, work, "bundle.yaml", bundle)
	result := targeted{deployments: map[string]map[string]any{}}
	for _, object := range documents(t, mustRun(t, "target", "-b", file, "--clusters", clusters)) {
		if object["kind"] == "Content" {
			result.content = object
			continue
		}
		labels := object["metadata"].(map[string]any)["labels"].(map[string]any)
		result.deployments[labels[fleet.ClusterLabel].(string)] = object
	}
	return result
}

func checkFirstPass(t *testing.T, expected, bundle string, got targeted) {
	t.Helper()
	file := filepath.Join(expected, "rollout.yaml")
	if _, err := os.Stat(file); err != nil {
		return
	}
	recorded := readYAML[map[string]struct{ FirstPass []string }](t, file)[bundle]
	var first []string
	for cluster := range got.deployments {
		first = append(first, cluster)
	}
	slices.Sort(first)
	if diff := cmp.Diff(recorded.FirstPass, first); diff != "" {
		t.Errorf("%s: clusters of the first pass (-want +got):\n%s", bundle, diff)
	}
}

func checkDeployment(t *testing.T, file string, got map[string]any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(data)) == "none" {
		if got != nil {
			t.Errorf("%s: a deployment, want none", file)
		}
		return
	}
	if got == nil {
		t.Errorf("%s: no deployment", file)
		return
	}
	want := readYAML[map[string]any](t, file)
	for _, key := range []string{"options", "stagedOptions"} {
		if options, ok := want[key].(map[string]any); ok {
			want[key] = normalOptions(options)
		}
	}
	if diff := cmp.Diff(want, normalDeployment(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// normalDeployment brings a BundleDeployment into the form of the recordings.
func normalDeployment(object map[string]any) map[string]any {
	spec := object["spec"].(map[string]any)
	labels := object["metadata"].(map[string]any)["labels"].(map[string]any)
	delete(labels, fleet.CommitLabel)
	delete(labels, fleet.ContentLabel)
	options, staged := normalOptions(spec["options"]), normalOptions(spec["stagedOptions"])
	id, _ := spec["deploymentID"].(string)
	result := map[string]any{
		"labels": labels, "options": options, "promoted": id != "" && id == spec["stagedDeploymentID"],
	}
	if !cmp.Equal(options, staged) {
		result["stagedOptions"] = staged
	}
	for _, key := range []string{"paused", "dependsOn", "correctDrift"} {
		if spec[key] != nil {
			result[key] = spec[key]
		}
	}
	return result
}

func checkObjects(t *testing.T, work, file string, got targeted, cluster string) {
	t.Helper()
	deployment := got.deployments[cluster]
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		if deployment != nil {
			t.Errorf("%s: objects are not recorded", file)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if deployment == nil {
		t.Errorf("%s: no deployment", file)
		return
	}
	input := writeYAML(t, work, "deploy.yaml", map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{got.content, deployment}})
	want, printed := objectList(t, data), objectList(t, []byte(mustRun(t, "deploy", "--dry-run", "--input-file", input)))
	if diff := cmp.Diff(normalObjects(want), normalObjects(printed)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func objectList(t *testing.T, data []byte) []map[string]any {
	t.Helper()
	var list []map[string]any
	if err := yaml.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func normalObjects(objects []map[string]any) []any {
	slices.SortFunc(objects, func(a, b map[string]any) int { return strings.Compare(sortKey(a), sortKey(b)) })
	result := []any{}
	for _, object := range objects {
		result = append(result, shortened(object))
	}
	return result
}

func sortKey(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	return fmt.Sprint(object["kind"], "\x00", metadata["namespace"], "\x00", metadata["name"])
}

// shortened replaces long texts by their digest.
func shortened(value any) any {
	switch value := value.(type) {
	case map[string]any:
		result := map[string]any{}
		for key, item := range value {
			result[key] = shortened(item)
		}
		return result
	case []any:
		result := []any{}
		for _, item := range value {
			result = append(result, shortened(item))
		}
		return result
	case string:
		if len(value) > 65536 {
			return fmt.Sprintf("sha256:%x bytes:%d", sha256.Sum256([]byte(value)), len(value))
		}
	}
	return value
}

// normalOptions leaves out what does not count; see INDEX.md of the recordings.
func normalOptions(value any) map[string]any {
	result := map[string]any{}
	options, _ := value.(map[string]any)
	for key, value := range options {
		inner, isMap := value.(map[string]any)
		if !isMap {
			result[key] = value
			continue
		}
		if key == "helm" {
			delete(inner, "templateValues")
			delete(inner, "valuesFiles")
			if values, ok := inner["values"].(map[string]any); ok && len(values) == 0 {
				delete(inner, "values")
			}
		}
		if len(inner) > 0 || strings.HasSuffix(key, "Selector") {
			result[key] = inner
		}
	}
	return result
}

func normalBundle(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	delete(object, "status")
	labels := object["metadata"].(map[string]any)["labels"].(map[string]any)
	delete(labels, fleet.CommitLabel)
	spec := object["spec"].(map[string]any)
	if spec["targetCustomizationMode"] == string(fleet.FirstMatch) {
		delete(spec, "targetCustomizationMode")
	}
	resources, _ := spec["resources"].([]any)
	for _, item := range resources {
		resource := item.(map[string]any)
		text, packed := resource["content"].(string)
		if !packed || resource["encoding"] != content.EncodingGzip {
			continue
		}
		data, err := content.Decode(fleet.BundleResource{Encoding: content.EncodingGzip, Content: text})
		if err != nil {
			t.Fatal(err)
		}
		delete(resource, "content")
		resource["contentSha256"], resource["contentBytes"] = fmt.Sprintf("%x", sha256.Sum256(data)), float64(len(data))
	}
	targets, _ := spec["targets"].([]any)
	for i, target := range targets {
		targets[i] = prunedOptions(target.(map[string]any))
	}
	object["spec"] = prunedOptions(spec)
	return object
}

func prunedOptions(options map[string]any) map[string]any {
	result := map[string]any{}
	for key, value := range options {
		inner, isMap := value.(map[string]any)
		if isMap && key == "helm" {
			delete(inner, "valuesFiles")
		}
		if !isMap || len(inner) > 0 || strings.HasSuffix(key, "Selector") {
			result[key] = value
		}
	}
	return result
}

func byName(t *testing.T, objects []map[string]any) map[string]any {
	t.Helper()
	result := map[string]any{}
	for _, object := range objects {
		if object["kind"] == "Bundle" {
			result[nameOf(object)] = normalBundle(t, clone(t, object))
		}
	}
	return result
}

func clone(t *testing.T, object map[string]any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]any{}
	if err := json.Unmarshal(data, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func nameOf(object map[string]any) string {
	return object["metadata"].(map[string]any)["name"].(string)
}

func recordedDocuments(t *testing.T, file string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return documents(t, string(data))
}

func documents(t *testing.T, text string) []map[string]any {
	t.Helper()
	var result []map[string]any
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		if len(object) > 0 {
			result = append(result, object)
		}
	}
	return result
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

func writeYAML(t *testing.T, dir, name string, value any) string {
	t.Helper()
	data, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, dir, name, string(data))
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// offline takes away everything that leads to a cluster.
func offline(t *testing.T) {
	t.Helper()
	for _, name := range []string{"HOME", "KUBECONFIG", "KUBERNETES_SERVICE_HOST", "XDG_CACHE_HOME"} {
		t.Setenv(name, "")
	}
}

// outcome is what a run of the program gave.
type outcome struct {
	code        int
	out, errOut string
}

func runWith(t *testing.T, env session.Environment, stdin string, args ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	code := Run(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut}, env)
	return outcome{code, out.String(), errOut.String()}
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	got := runWith(t, session.Environment{}, "", args...)
	if got.code != 0 || got.errOut != "" {
		t.Fatalf("fleet %s: exit code %d\n%s", strings.Join(args, " "), got.code, got.errOut)
	}
	return got.out
}
