package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

const (
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: b}\n"
	clusters  = `apiVersion: fleet.cattle.io/v1alpha1
kind: Cluster
metadata: {name: dev, labels: {env: dev}}
---
apiVersion: fleet.cattle.io/v1alpha1
kind: Cluster
metadata: {name: prod, labels: {env: prod}}
---
apiVersion: fleet.cattle.io/v1alpha1
kind: Cluster
metadata: {name: test, labels: {env: test}}
`
)

// repository makes a folder with files and clusters.yaml beside it the working directory.
func repository(t *testing.T, files map[string]string) {
	t.Helper()
	offline(t)
	dir := t.TempDir()
	for name, text := range files {
		writeFile(t, dir, filepath.Join("repo", name), text)
	}
	writeFile(t, dir, "clusters.yaml", clusters)
	t.Chdir(filepath.Join(dir, "repo"))
}

func TestExitCodesAndMessages(t *testing.T) {
	for name, test := range map[string]struct {
		args     []string
		wantCode int
		wantErr  string
	}{
		"no command":                {nil, 0, ""},
		"unknown command":           {[]string{"aplly"}, 2, "error: unknown command \"aplly\" for \"fleet\"; did you mean apply?\nSee 'fleet --help'.\n"},
		"unknown flag":              {[]string{"apply", "x", "--labels", "a=b"}, 2, "error: unknown flag: --labels; did you mean --label?\nSee 'fleet apply --help'.\n"},
		"apply without a name":      {[]string{"apply"}, 2, "error: apply needs the NAME of the bundles' owner, and may have PATHs\nSee 'fleet apply --help'.\n"},
		"file and path":             {[]string{"apply", "x", "p", "-f", "b"}, 2, "error: --file is a whole Bundle, so it takes no PATH\nSee 'fleet apply --help'.\n"},
		"registry and output":       {[]string{"apply", "x", "app", "--oci-registry-secret", "s", "-o", "-"}, 2, "error: with --output the contents stay in the Bundle, so --oci-registry-secret has no meaning with it\nSee 'fleet apply --help'.\n"},
		"no such path":              {[]string{"apply", "x", "nowhere", "-o", "-"}, 1, "error: no bundle in nowhere: a bundle is a folder with fleet.yaml, or with YAML files below a path\n"},
		"a name that is no label":   {[]string{"apply", "my shop", "app", "-o", "-"}, 2, "error: NAME \"my shop\" becomes a label of every Bundle and cannot be one: at most 63 letters, digits, dashes, dots and underscores\nSee 'fleet apply --help'.\n"},
		"render of no folder":       {[]string{"render", "nowhere", "--clusters", "../clusters.yaml"}, 1, "error: read folder nowhere: there is no such folder\n"},
		"render of a file":          {[]string{"render", "bundle.yaml", "--clusters", "../clusters.yaml"}, 1, "error: read folder bundle.yaml: it is a file; name the folder that the repository or the bundle is in\n"},
		"render of no bundle":       {[]string{"render", "--clusters", "../clusters.yaml", "--bundle", "zzz"}, 1, "error: bundle zzz is not known: no bundle has this name or is made from this folder\n"},
		"lint of no folder":         {[]string{"lint", "nowhere"}, 1, "error: read folder nowhere: there is no such folder\n"},
		"diff of no folder":         {[]string{"diff", "nowhere", "--local", "--clusters", "../clusters.yaml"}, 2, "error: read folder nowhere: there is no such folder\n"},
		"target without a bundle":   {[]string{"target"}, 2, "error: target needs a Bundle: --bundle-file FILE, or - for standard input\nSee 'fleet target --help'.\n"},
		"target with an argument":   {[]string{"target", "x"}, 2, "error: unknown command \"x\" for \"fleet target\"\nSee 'fleet target --help'.\n"},
		"target without a cluster":  {[]string{"target", "-b", "bundle.yaml"}, 1, "error: read clusters from the hub (or name a file with --clusters): no cluster is known: there is no kubeconfig (pass --kubeconfig, or files where the command takes them)\n"},
		"deploy without input":      {[]string{"deploy", "-d"}, 2, "error: deploy needs --input-file FILE, or - for standard input\nSee 'fleet deploy --help'.\n"},
		"deploy of something else":  {[]string{"deploy", "-d", "-i", "bundle.yaml"}, 1, "error: read deployment: bundle.yaml holds a Bundle, not what it gives on a cluster; `fleet target -b bundle.yaml` makes that of it\n"},
		"deploy of nothing":         {[]string{"deploy", "-d", "-i", "../clusters.yaml"}, 1, "error: read deployment: ../clusters.yaml needs a Content and a BundleDeployment, and has 0 and 0; is the bundle targeted at any cluster?\n"},
		"get without a kind":        {[]string{"get"}, 2, "error: get needs a kind: repos, bundles, deployments, clusters, groups, helmops\nSee 'fleet get --help'.\n"},
		"get of another kind":       {[]string{"get", "pods"}, 2, "error: \"pods\" is no kind that can be listed; there are repos, bundles, deployments, clusters, groups, helmops\nSee 'fleet get --help'.\n"},
		"get in an unknown format":  {[]string{"get", "repos", "-o", "xml"}, 2, "error: --output \"xml\" is none of json, yaml, name, wide, jsonpath, go-template and custom-columns\nSee 'fleet get --help'.\n"},
		"get without a cluster":     {[]string{"get", "repos"}, 1, "error: no cluster is known: there is no kubeconfig (pass --kubeconfig, or files where the command takes them)\n"},
		"get without its config":    {[]string{"get", "repos", "--kubeconfig", "missing"}, 1, "error: read kubeconfig: stat missing: no such file or directory\n"},
		"why without a name":        {[]string{"why", "repo"}, 2, "error: why needs a KIND and a NAME, such as `fleet why repo shop`\nSee 'fleet why --help'.\n"},
		"rollout of nothing":        {[]string{"rollout", "status"}, 2, "error: status needs the NAME of a GitRepo, or a KIND and a NAME, such as `fleet rollout status bundle shop-web`\nSee 'fleet rollout status --help'.\n"},
		"rollout of a cluster":      {[]string{"rollout", "pause", "cluster", "x"}, 2, "error: rollouts are those of bundles and GitRepos, not of clusters\nSee 'fleet rollout pause --help'.\n"},
		"rollout undo":              {[]string{"rollout", "undo", "x"}, 2, "error: unknown command \"undo\" for \"fleet rollout\"; there are status, pause and resume\nSee 'fleet rollout --help'.\n"},
		"rollout of a commit":       {[]string{"rollout", "status", "bundle", "x", "--commit", "a"}, 2, "error: --commit is for GitRepos\nSee 'fleet rollout status --help'.\n"},
		"rollout with a timeout":    {[]string{"rollout", "status", "x", "--timeout", "1m"}, 2, "error: --timeout goes with --watch\nSee 'fleet rollout status --help'.\n"},
		"rollout without a cluster": {[]string{"rollout", "status", "x"}, 1, "error: no cluster is known: there is no kubeconfig (pass --kubeconfig, or files where the command takes them)\n"},
		"diff without versions":     {[]string{"diff"}, 2, "error: say what to compare: --ref A --ref B, or --local for the working tree\nSee 'fleet diff --help'.\n"},
		"diff outside of git":       {[]string{"diff", "/", "--local"}, 2, "error: open git repository at /: repository does not exist\n"},
		"lint in an unknown format": {[]string{"lint", "-o", "xml"}, 2, "error: --output \"xml\" is none of text, json, github and sarif\nSee 'fleet lint --help'.\n"},
		"version":                   {[]string{"version", "--client"}, 0, ""},
		"version without a hub":     {[]string{"version"}, 0, "The hub's version is not known: no cluster is known: there is no kubeconfig (pass --kubeconfig, or files where the command takes them)\n"},
		"completion":                {[]string{"completion", "bash"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			repository(t, map[string]string{"app/one.yaml": configMap, "bundle.yaml": "apiVersion: fleet.cattle.io/v1alpha1\nkind: Bundle\nmetadata: {name: b}\n"})
			got := runWith(t, session.Environment{}, "", test.args...)
			if got.code != test.wantCode || got.errOut != test.wantErr {
				t.Errorf("exit code %d, want %d\ngot  %swant %s", got.code, test.wantCode, got.errOut, test.wantErr)
			}
		})
	}
}

func TestJSONErrors(t *testing.T) {
	offline(t)
	got := runWith(t, session.Environment{JSONErrors: true}, "", "apply", "x", "nowhere", "-o", "-")
	var line map[string]string
	if err := json.Unmarshal([]byte(got.errOut), &line); err != nil {
		t.Fatalf("%v: %s", err, got.errOut)
	}
	if got.code != 1 || !strings.HasPrefix(line["fleetErrorMessage"], "no bundle in nowhere") {
		t.Errorf("exit code %d, message %q", got.code, line["fleetErrorMessage"])
	}
}

func TestEnvironment(t *testing.T) {
	set := map[string]string{
		"NAMESPACE": "ns", "COMMIT": "c", "HELM_USERNAME": "u", "FLEET_JSON_OUTPUT": "true",
		"FLEET_APPLY_CONFLICT_RETRIES": "3", "FLEET_BUNDLE_CREATION_MAX_CONCURRENCY": "7",
	}
	got := EnvironmentFrom(func(name string) string { return set[name] })
	want := session.Environment{Namespace: "ns", Commit: "c", HelmUsername: "u", JSONErrors: true, ConflictRetries: "3", Concurrency: "7"}
	got.Proxy = nil
	if got.Namespace != want.Namespace || got.Commit != want.Commit || got.HelmUsername != want.HelmUsername ||
		got.JSONErrors != want.JSONErrors || got.ConflictRetries != want.ConflictRetries || got.Concurrency != want.Concurrency {
		t.Errorf("environment %+v, want %+v", got, want)
	}
}

func TestApplyFlags(t *testing.T) {
	targetsFile := "targets: [{name: t, clusterSelector: {}}]\n"
	for name, test := range map[string]struct {
		env   session.Environment
		files map[string]string
		args  []string
		want  []string
		not   []string
	}{
		"defaults": {args: []string{"app"}, want: []string{"namespace: fleet-local\n", "name: shop-app\n", "clusterGroup: default\n"}, not: []string{"fleet.cattle.io/commit"}},
		"environment": {env: session.Environment{Namespace: "ns", Commit: "abc"}, args: []string{"app"},
			want: []string{"namespace: ns\n", "fleet.cattle.io/commit: abc\n"}},
		"flags before environment": {env: session.Environment{Namespace: "ns", Commit: "abc"}, args: []string{"app", "-n", "mine", "--commit", "def"},
			want: []string{"namespace: mine\n", "fleet.cattle.io/commit: def\n"}},
		"targets file": {files: map[string]string{"targets.yaml": targetsFile}, args: []string{"app", "--targets-file", "targets.yaml"},
			want: []string{"targetRestrictions:\n  - clusterSelector: {}\n    name: t\n"}},
		"bundle file": {files: map[string]string{"app/other.yaml": "defaultNamespace: elsewhere\n"}, args: []string{"app", "-b", "other.yaml"},
			want: []string{"name: shop-app\n", "defaultNamespace: elsewhere\n"}, not: []string{"name: other.yaml"}},
		"driven scan": {files: map[string]string{"app/other.yaml": "defaultNamespace: elsewhere\n"}, args: []string{"app|other.yaml", "--driven-scan", "--driven-scan-sep", "|"},
			want: []string{"name: shop-app-other\n", "defaultNamespace: elsewhere\n"}},
		"options": {args: []string{"app", "--paused", "--keep-resources", "--delete-namespace", "-a", "sa", "--target-namespace", "tn", "--sync-generation", "3", "--correct-drift", "-l", "a=b,c=d"},
			want: []string{"paused: true\n", "keepResources: true\n", "deleteNamespace: true\n", "serviceAccount: sa\n", "namespace: tn\n", "forceSyncGeneration: 3\n", "correctDrift:\n    enabled: true\n", "a: b\n", "c: d\n"}},
		"compress": {args: []string{"app", "-c"}, want: []string{"encoding: base64+gz\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"app/one.yaml": configMap}
			for file, text := range test.files {
				files[file] = text
			}
			repository(t, files)
			got := runWith(t, test.env, "", append([]string{"apply", "shop", "-o", "-"}, test.args...)...)
			if got.code != 0 {
				t.Fatalf("exit code %d: %s", got.code, got.errOut)
			}
			for _, text := range test.want {
				if !strings.Contains(got.out, text) {
					t.Errorf("output lacks %q:\n%s", text, got.out)
				}
			}
			for _, text := range test.not {
				if strings.Contains(got.out, text) {
					t.Errorf("output has %q:\n%s", text, got.out)
				}
			}
		})
	}
}

func TestApplyKnowsTheCommit(t *testing.T) {
	repository(t, map[string]string{"app/one.yaml": configMap})
	id := commit(t, "first")
	if out := mustRun(t, "apply", "shop", "app", "-o", "-"); !strings.Contains(out, "fleet.cattle.io/commit: "+id) {
		t.Errorf("output lacks commit %s:\n%s", id, out)
	}
}

// commit makes the working directory a git checkout, if it is none, and commits everything.
func commit(t *testing.T, message string) string {
	t.Helper()
	git := func(args ...string) string {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Env = append(os.Environ(), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.test", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.test")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	git("add", "-A")
	git("commit", "-q", "-m", message)
	return git("rev-parse", "HEAD")
}

// Standard input and output are files like others: the three commands make a pipeline.
func TestPipeline(t *testing.T) {
	repository(t, map[string]string{"app/one.yaml": configMap, "targets.yaml": "targets: [{clusterSelector: {}}]\n"})
	bundles := mustRun(t, "apply", "shop", "app", "--targets-file", "targets.yaml", "-o", "-")
	deployments := runWith(t, session.Environment{}, bundles, "target", "-b", "-", "--clusters", "../clusters.yaml")
	objects := runWith(t, session.Environment{}, deployments.out, "deploy", "-d", "-i", "-")
	if objects.code != 0 || !strings.Contains(objects.out, "name: one\n") {
		t.Errorf("exit code %d, objects:\n%s%s%s", objects.code, objects.out, deployments.errOut, objects.errOut)
	}
}

func TestDeprecatedTest(t *testing.T) {
	repository(t, map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n", "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.title }}}\n",
		"fleet.yaml": "helm: {values: {title: base}}\ntargetCustomizations:\n- name: red\n  clusterSelector: {matchLabels: {c: red}}\n  helm: {values: {title: \"${ .ClusterName }\"}}\n- name: ops\n  clusterGroup: ops\n",
	})
	for name, test := range map[string]struct {
		args                []string
		wantCode            int
		wantErr, wantObject string
	}{
		"labels":   {[]string{"-l", "c=red", "-N", "one"}, 0, "# Matched: red", "name: one\n"},
		"group":    {[]string{"-g", "ops"}, 0, "# Matched: ops", "name: base\n"},
		"explicit": {[]string{"-t", "ops"}, 0, "# Matched: ops", "name: base\n"},
		"quiet":    {[]string{"-t", "ops", "-q"}, 0, "# Matched: ops", ""},
		"none":     {[]string{"-g", "other"}, 1, "error: no match found", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := runWith(t, session.Environment{}, "", append([]string{"test"}, test.args...)...)
			if got.code != test.wantCode || !strings.Contains(got.errOut, test.wantErr) || !strings.Contains(got.out, test.wantObject) {
				t.Errorf("exit code %d\n%s\n%s", got.code, got.errOut, got.out)
			}
		})
	}
}

// Every command is in the document of settings, and none besides.
func TestCommandsAreDocumented(t *testing.T) {
	document, err := os.ReadFile("../../docs/operations/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	var told, commands []string
	for _, row := range regexp.MustCompile("(?m)^\\| `fleet ([a-z]+)` ").FindAllStringSubmatch(string(document), -1) {
		told = append(told, row[1])
	}
	for _, command := range newRoot(session.New(genericiooptions.NewTestIOStreamsDiscard(), session.Environment{})).Commands() {
		commands = append(commands, command.Name())
	}
	slices.Sort(told)
	slices.Sort(commands)
	if diff := cmp.Diff(commands, told); diff != "" {
		t.Errorf("docs/operations/settings.md (-commands +document):\n%s", diff)
	}
}
