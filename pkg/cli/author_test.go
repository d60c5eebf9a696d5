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
