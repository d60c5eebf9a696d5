package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

// shop is a repository with a chart that differs between clusters.
func shop() map[string]string {
	return map[string]string{
		"web/Chart.yaml":          "apiVersion: v2\nname: web\nversion: 1.0.0\n",
		"web/templates/cm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {color: {{ .Values.color }}}\n",
		"web/templates/pass.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: pass}\nstringData: {password: {{ .Values.password }}, other: same}\n",
		"web/fleet.yaml": `defaultNamespace: web
helm:
  values: {color: red, password: hunter2}
targetCustomizations:
- name: production
  clusterSelector: {matchLabels: {env: prod}}
  helm: {values: {color: "${ .ClusterLabels.env }-blue"}}
- name: nowhere
  clusterName: gone
- name: closed
  clusterName: test
  doNotDeploy: true
`,
	}
}

func TestRender(t *testing.T) {
	repository(t, shop())
	names := mustRun(t, "render", "--name", "shop", "--clusters", "../clusters.yaml", "-o", "name")
	want := "fleet-local/dev shop-web Secret pass\nfleet-local/dev shop-web ConfigMap web\n" +
		"fleet-local/prod shop-web Secret pass\nfleet-local/prod shop-web ConfigMap web\n"
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	yaml := mustRun(t, "render", "--name", "shop", "--clusters", "../clusters.yaml", "--cluster", "prod")
	if !strings.Contains(yaml, "# Cluster: fleet-local/prod, bundle: shop-web\n") || !strings.Contains(yaml, "color: prod-blue\n") || strings.Contains(yaml, "/dev") {
		t.Errorf("objects of one cluster:\n%s", yaml)
	}
	out := t.TempDir()
	mustRun(t, "render", "--name", "shop", "--clusters", "../clusters.yaml", "--output-dir", out)
	data, err := os.ReadFile(filepath.Join(out, "fleet-local", "dev", "shop-web.yaml"))
	if err != nil || !strings.Contains(string(data), "color: red\n") {
		t.Errorf("file of a cluster: %v\n%s", err, data)
	}
}

// What fails on one cluster is said, and the others are printed.
func TestRenderKeepsGoing(t *testing.T) {
	files := shop()
	files["web/fleet.yaml"] = strings.Replace(files["web/fleet.yaml"], ".ClusterLabels.env", ".ClusterLabels.missing", 1)
	repository(t, files)
	got := runWith(t, session.Environment{}, "", "render", "--name", "shop", "--clusters", "../clusters.yaml", "-o", "name")
	if got.code != 1 || !strings.Contains(got.out, "fleet-local/dev shop-web ConfigMap web\n") || !strings.Contains(got.errOut, "cluster fleet-local/prod") {
		t.Errorf("exit code %d\n%s\n%s", got.code, got.out, got.errOut)
	}
}

// A cluster that fails leaves no file, and a bundle that was not asked for no error.
func TestRenderLeavesOut(t *testing.T) {
	files := shop()
	files["web/fleet.yaml"] = strings.Replace(files["web/fleet.yaml"], ".ClusterLabels.env", ".ClusterLabels.missing", 1)
	files["good/fleet.yaml"], files["good/one.yaml"] = "{}", configMap
	files["broken/fleet.yaml"] = "helm: [\n"
	repository(t, files)
	out := t.TempDir()
	got := runWith(t, session.Environment{}, "", "render", "--name", "shop", "--clusters", "../clusters.yaml", "--output-dir", out)
	if _, err := os.Stat(filepath.Join(out, "fleet-local", "prod", "shop-web.yaml")); got.code != 1 || !os.IsNotExist(err) {
		t.Errorf("exit code %d, file of a cluster that failed: %v", got.code, err)
	}
	if _, err := os.Stat(filepath.Join(out, "fleet-local", "dev", "shop-web.yaml")); err != nil {
		t.Error(err)
	}
	want := "fleet-local/dev shop-good ConfigMap one\nfleet-local/prod shop-good ConfigMap one\nfleet-local/test shop-good ConfigMap one\n"
	for _, bundle := range []string{"shop-good", "good", "good/"} {
		if got := mustRun(t, "render", "--name", "shop", "--clusters", "../clusters.yaml", "--bundle", bundle, "-o", "name"); got != want {
			t.Errorf("--bundle %s: got\n%swant\n%s", bundle, got, want)
		}
	}
	got = runWith(t, session.Environment{}, "", "render", "--clusters", "../clusters.yaml", "--bundle", "broken")
	if got.code != 1 || strings.Contains(got.errOut, "reach none") {
		t.Errorf("a broken bundle: exit code %d\n%s", got.code, got.errOut)
	}
}

// What fails on one cluster is said by target, and the others are printed.
func TestTargetKeepsGoing(t *testing.T) {
	repository(t, map[string]string{
		"app/fleet.yaml": "overrideTargets: [{clusterSelector: {}}]\nhelm: {values: {a: '${ if eq .ClusterName \"prod\" }${ fail \"not here\" }${ end }'}}\n", "app/one.yaml": configMap,
	})
	bundles := mustRun(t, "apply", "shop", "app", "-o", "-")
	got := runWith(t, session.Environment{}, bundles, "target", "-b", "-", "--clusters", "../clusters.yaml")
	if got.code != 1 || strings.Count(got.out, "kind: BundleDeployment") != 2 || !strings.Contains(got.errOut, "on cluster fleet-local/prod: render values: a: ") {
		t.Errorf("exit code %d\n%s\n%s", got.code, got.out, got.errOut)
	}
}

func TestExplainHeldBack(t *testing.T) {
	files := shop()
	files["web/fleet.yaml"] = strings.Replace(files["web/fleet.yaml"], ".ClusterLabels.env", ".ClusterLabels.missing", 1)
	repository(t, files)
	got := mustRun(t, "explain", "--clusters", "../clusters.yaml")
	if want := "  Cluster fleet-local/prod: held back by an error, although \"all\" reaches it, with the customization \"production\"\n    ERROR render values: color: "; !strings.Contains(got, want) {
		t.Errorf("explanation lacks %q:\n%s", want, got)
	}
	if text := mustRun(t, "explain", "--clusters", "../clusters.yaml", "--cluster", "prod", "-o", "json"); !strings.Contains(text, `"deployed": false`) {
		t.Errorf("a cluster that is held back counts as deployed:\n%s", text)
	}
}

func TestRenderWithAGitRepo(t *testing.T) {
	files := shop()
	files["gitrepo.yaml"] = "apiVersion: fleet.cattle.io/v1alpha1\nkind: GitRepo\nmetadata: {name: mine, namespace: ws}\nspec: {paths: [web], targets: [{clusterSelector: {matchLabels: {env: dev}}}]}\n"
	repository(t, files)
	got := mustRun(t, "render", "-g", "gitrepo.yaml", "--clusters", "../clusters.yaml", "-o", "name")
	if want := "ws/dev mine-web Secret pass\nws/dev mine-web ConfigMap web\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestExplain(t *testing.T) {
	repository(t, shop())
	got := mustRun(t, "explain", "--name", "shop", "--clusters", "../clusters.yaml")
	for _, want := range []string{
		"Bundle shop-web (web/fleet.yaml)\n",
		"  Cluster fleet-local/dev: deployed, because \"all\" reaches it, and no customization applies\n",
		"  Cluster fleet-local/prod: deployed, because \"all\" reaches it, with the customization \"production\"\n",
		"  Cluster fleet-local/test: not deployed, because \"closed\" says doNotDeploy\n",
		"customization nowhere              not matched: clusterName \"gone\" is another cluster\n",
		"option        defaultNamespace = \"web\"  (bundle)\n",
		"option        helm.values.color = \"red\"  (bundle)\n",
		"option        helm.values.color = \"prod-blue\"  (target \"production\", rendered for the cluster)\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("explanation lacks %q:\n%s", want, got)
		}
	}
	var report struct {
		Items []struct{ Clusters []struct{ Deployed bool } }
	}
	if err := json.Unmarshal([]byte(mustRun(t, "explain", "--clusters", "../clusters.yaml", "-o", "json")), &report); err != nil || len(report.Items[0].Clusters) != 3 {
		t.Errorf("report %+v: %v", report, err)
	}
}

func TestDiff(t *testing.T) {
	repository(t, shop())
	commit(t, "first")
	run := func(args ...string) outcome {
		return runWith(t, session.Environment{}, "", append([]string{"diff", "--name", "shop", "--clusters", "../clusters.yaml"}, args...)...)
	}
	if got := run("--local"); got.code != 0 || got.out != "" {
		t.Errorf("nothing changed: exit code %d\n%s%s", got.code, got.out, got.errOut)
	}
	changed := strings.NewReplacer("color: red", "color: green", "hunter2", "hunter3").Replace(shop()["web/fleet.yaml"])
	writeFile(t, ".", "web/fleet.yaml", changed)
	got := run("--local")
	if got.code != 1 {
		t.Errorf("exit code %d, want 1: %s", got.code, got.errOut)
	}
	for _, want := range []string{
		"Bundle shop-web on fleet-local/dev: changes\n", "-  color: red\n+  color: green\n",
		"Bundle shop-web on fleet-local/prod: changes\n", "-  password: (masked, before)\n+  password: (masked, after)\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("diff lacks %q:\n%s", want, got.out)
		}
	}
	if strings.Contains(got.out, "hunter") {
		t.Errorf("the diff shows a secret:\n%s", got.out)
	}
	commit(t, "second")
	if again := run("--ref", "HEAD~1", "--ref", "main"); again.out != got.out || again.code != 1 {
		t.Errorf("between commits: exit code %d\n%s%s", again.code, again.out, again.errOut)
	}
	if err := os.RemoveAll("web"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, ".", "raw/one.yaml", configMap)
	got = run("--local")
	for _, want := range []string{
		"Bundle shop on fleet-local/dev, fleet-local/prod, fleet-local/test: is deployed\n", "+++ ConfigMap one\n",
		"Bundle shop-web on fleet-local/dev: is removed\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("diff lacks %q:\n%s", want, got.out)
		}
	}
	writeFile(t, ".", "raw/fleet.yaml", "helm: [")
	if got := run("--local"); got.code != 2 {
		t.Errorf("a tree that cannot be read gives exit code %d, want 2", got.code)
	}
}

// What was wrong before neither fails a diff nor hides what mends it; what is wrong now removes nothing.
func TestDiffOfBrokenBundles(t *testing.T) {
	files := shop()
	files["web/fleet.yaml"] = "helm: {values: {color: '${ .ClusterLabels.env', password: x}}\n"
	files["broken/fleet.yaml"], files["broken/one.yaml"] = "helm: [\n", configMap
	files["good/fleet.yaml"], files["good/two.yaml"] = "name: odd\n", strings.Replace(configMap, "one", "two", 1)
	repository(t, files)
	commit(t, "first")
	run := func() outcome {
		return runWith(t, session.Environment{}, "", "diff", "--local", "--name", "shop", "--clusters", "../clusters.yaml", "--cluster", "dev")
	}
	writeFile(t, ".", "good/two.yaml", strings.Replace(configMap, "one", "three", 1))
	writeFile(t, ".", "broken/fleet.yaml", "{}\n")
	got := run()
	if got.code != 1 || !strings.Contains(got.out, "Bundle odd on fleet-local/dev: changes\n") || !strings.Contains(got.out, "Bundle shop-broken on fleet-local/dev: is deployed\n") ||
		!strings.Contains(got.errOut, "does not render, before as after") || !strings.Contains(got.errOut, "warning: HEAD: bundle shop-broken") {
		t.Errorf("broken before: exit code %d\n%s\n%s", got.code, got.out, got.errOut)
	}
	writeFile(t, ".", "web/fleet.yaml", "helm: {values: {color: red, password: x}}\n")
	if got := run(); got.code != 1 || !strings.Contains(got.out, "Bundle shop-web on fleet-local/dev: renders now, and did not before\n") || !strings.Contains(got.out, "+  color: red\n") {
		t.Errorf("mended: exit code %d\n%s\n%s", got.code, got.out, got.errOut)
	}
	commit(t, "second")
	writeFile(t, ".", "good/fleet.yaml", "name: [\n")
	if got := run(); got.code != 2 || got.out != "" {
		t.Errorf("broken now: exit code %d\n%s\n%s", got.code, got.out, got.errOut)
	}
}

// Findings of rendering name the file and the line, also in charts and Kustomize bases.
func TestLintPlaces(t *testing.T) {
	chart := "apiVersion: v2\nname: c\nversion: 1.0.0\n"
	repository(t, map[string]string{
		"raw/one.yaml": configMap + "---\na: b\n\tc: d\n", "raw/fleet.yaml": "{}",
		"nokind/two.yaml": configMap + "---\nnote: x\n", "nokind/fleet.yaml": "{}",
		"chart/charts/in/Chart.yaml": chart, "chart/charts/in/templates/a.yaml": "\n{{ fail \"no\" }}", "chart/fleet.yaml": "helm: {chart: charts/in}",
		"yaml/Chart.yaml": chart, "yaml/templates/b.yaml": "a: b\n c: d\n", "yaml/fleet.yaml": "{}",
		"over/fleet.yaml": "{}", "over/kustomization.yaml": "resources: [../base]\n", "base/kustomization.yaml": "resorces: []\n",
		"values/fleet.yaml": "helm: {valuesFiles: [v.yaml]}", "values/v.yaml": "- a\n",
		"a/fleet.yaml": "dependsOn: [{name: r-b}, {name: other}]", "a/one.yaml": configMap,
		"b/fleet.yaml": "labels: {x: y}\ndependsOn: [{name: r-a}, {selector: {matchLabels: {x: y}}}]", "b/one.yaml": configMap,
		"c/fleet.yaml": "dependsOn: [{name: r-a}]", "c/one.yaml": configMap,
		"d/fleet.yaml": "dependsOn: [{name: r-d}]", "d/one.yaml": configMap,
	})
	got := runWith(t, session.Environment{}, "", "lint", "--name", "r", "--clusters", "../clusters.yaml", "-p", "*").out
	for _, want := range []string{
		"raw/one.yaml:7:1: error: render bundle r-raw: one.yaml, document 2 (line 6): not YAML: line 7: ",
		"nokind/two.yaml:6:1: error: render bundle r-nokind: ",
		"chart/charts/in/templates/a.yaml:2:1: error: render bundle r-chart: ",
		"yaml/templates/b.yaml: error: render bundle r-yaml: ",
		"base/kustomization.yaml: error: render bundle r-over: .kustomize/base/kustomization.yaml: ",
		"values/v.yaml: error: values/v.yaml: want a mapping of values",
		"a/fleet.yaml: warning: dependsOn goes round in a circle, so none of these bundles is ever deployed: r-a waits for r-b waits for r-a (dependency-cycle)\n",
		"d/fleet.yaml: warning: dependsOn goes round in a circle, so none of these bundles is ever deployed: r-d waits for r-d (dependency-cycle)\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("findings lack %q:\n%s", want, got)
		}
	}
	if cycles := strings.Count(got, "(dependency-cycle)"); cycles != 2 {
		t.Errorf("%d circles, want 2:\n%s", cycles, got)
	}
}

func TestLint(t *testing.T) {
	files := shop()
	files["web/values-prod.yaml"] = "color: x\n"
	files["Odd_Name/fleet.yaml"] = "namespce: x\n"
	files["Odd_Name/one.yaml"] = configMap
	files["broken/fleet.yaml"] = "helm: [\n"
	files["wrong/fleet.yaml"] = "\nhelm: 4\n"
	repository(t, files)
	got := runWith(t, session.Environment{}, "", "lint", "--name", "shop", "--clusters", "../clusters.yaml")
	want := `Odd_Name/fleet.yaml: warning: the bundle is called shop-odd-name-80e4a92f, because "shop-Odd_Name" cannot be a name; set name: in fleet.yaml to choose one (hashed-name)
Odd_Name/fleet.yaml:1:1: warning: unknown key "namespce" is ignored; did you mean "namespace"? (fleet-yaml)
broken/fleet.yaml:1:1: error: did not find expected node content (bundle)
web/fleet.yaml: warning: the customization "nowhere" applies to no cluster; ` + "`fleet explain`" + ` says why (unused-customization)
web/values-prod.yaml: warning: no helm.valuesFiles names this file, so it has no effect on values; name it, or leave it out with .fleetignore (unused-values-file)
wrong/fleet.yaml:2:7: error: helm: want a mapping of keys to values, got "4" (bundle)
`
	if got.code != 1 || got.errOut != "" {
		t.Errorf("exit code %d: %s", got.code, got.errOut)
	}
	if diff := cmp.Diff(want, got.out); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	github := runWith(t, session.Environment{}, "", "lint", "--name", "shop", "-o", "github").out
	if line := "::error file=wrong/fleet.yaml,line=2,col=7,title=fleet bundle::helm: want a mapping of keys to values, got \"4\"\n"; !strings.Contains(github, line) {
		t.Errorf("annotations lack %q:\n%s", line, github)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct{ RuleID string }
		}
	}
	if err := json.Unmarshal([]byte(runWith(t, session.Environment{}, "", "lint", "-o", "sarif").out), &log); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, rule := range log.Runs[0].Tool.Driver.Rules {
		known[rule.ID] = true
	}
	for _, result := range log.Runs[0].Results {
		if !known[result.RuleID] {
			t.Errorf("rule %s is not described", result.RuleID)
		}
	}
	if log.Version != "2.1.0" || len(log.Runs[0].Results) == 0 {
		t.Errorf("log %+v", log)
	}
}

// Without clusters, what does not depend on one is rendered, also as customizations have it; of templates the syntax
// is looked at.
func TestLintWithoutClusters(t *testing.T) {
	chart := "apiVersion: v2\nname: c\nversion: 1.0.0\n"
	repository(t, map[string]string{
		"nokind/two.yaml": configMap + "---\nnote: x\n", "nokind/fleet.yaml": "{}",
		"chart/Chart.yaml": chart, "chart/templates/a.yaml": "\n{{ .Values.x ", "chart/fleet.yaml": "{}",
		"custom/fleet.yaml": "targetCustomizations: [{name: p, clusterName: p, yaml: {overlays: [gone]}}, {name: q, clusterName: q, doNotDeploy: true, yaml: {overlays: [never]}}]\n", "custom/one.yaml": configMap,
		"shell/fleet.yaml": "helm: {values: {cmd: 'echo ${HOME}'}}\n", "shell/Chart.yaml": chart, "shell/templates/a.yaml": configMap,
		"label/fleet.yaml": "helm: {values: {region: '${ .ClusterLabels.region }'}}\n", "label/Chart.yaml": chart, "label/templates/a.yaml": "{{ fail .Values.region }}",
		"flow/fleet.yaml": "helm: {values: {a: ${ .ClusterName }}}\n", "flow/one.yaml": configMap,
		"a b/fleet.yaml": "nme: x\n", "a b/one.yaml": configMap,
	})
	got := runWith(t, session.Environment{}, "", "lint", "--name", "r")
	for _, want := range []string{
		"nokind/two.yaml:6:1: error: render bundle r-nokind: ",
		"chart/templates/a.yaml:2:1: error: render bundle r-chart: ",
		"custom/fleet.yaml: error: render bundle r-custom: yaml.overlays names \"gone\"",
		"shell/fleet.yaml: error: render values: cmd: ",
		"flow/fleet.yaml:1:1: error: did not find expected ',' or '}'; a text with braces in it, such as a template, must be quoted (bundle)\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("findings lack %q:\n%s", want, got.out)
		}
	}
	if errors := strings.Count(got.out, ": error: "); errors != 5 || got.code != 1 {
		t.Errorf("exit code %d, %d errors, want 5:\n%s", got.code, errors, got.out)
	}
	if log := runWith(t, session.Environment{}, "", "lint", "-o", "sarif").out; !strings.Contains(log, `"uri": "a%20b/fleet.yaml"`) {
		t.Errorf("a path is no URI:\n%s", log)
	}
}

// An error on many clusters is said once.
func TestRenderGroupsErrors(t *testing.T) {
	repository(t, map[string]string{"app/fleet.yaml": "yaml: {overlays: [gone]}\n", "app/one.yaml": configMap})
	got := runWith(t, session.Environment{}, "", "render", "--name", "r", "--clusters", "../clusters.yaml")
	if got.code != 1 || strings.Count(got.errOut, "gone") != 2 || !strings.Contains(got.errOut, "error: clusters fleet-local/") {
		t.Errorf("exit code %d:\n%s", got.code, got.errOut)
	}
}

func TestLintStrict(t *testing.T) {
	repository(t, map[string]string{"app/one.yaml": configMap, "app/fleet.yaml": "unknown: 1\n"})
	for _, test := range []struct {
		args []string
		want int
	}{{[]string{"lint"}, 0}, {[]string{"lint", "--strict"}, 1}, {[]string{"lint", "-p", "app", "-p", "gone"}, 0}} {
		if got := runWith(t, session.Environment{}, "", test.args...); got.code != test.want {
			t.Errorf("%v: exit code %d, want %d\n%s%s", test.args, got.code, test.want, got.out, got.errOut)
		}
	}
}
