package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver/gitservertest"
	"github.com/fairlead-dev/fairlead/pkg/cli"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

// Charts come from git over HTTP and SSH, without a cluster, and leave nothing behind.
func TestChartsFromGit(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "charts")
	repo.Commit(map[string]string{"web/Chart.yaml": chart, "web/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tagged}\n"})
	repo.Tag("v1", "")
	repo.Commit(map[string]string{"web/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: newest}\n"})
	keyDir := t.TempDir()
	key := write(t, keyDir, "key", string(server.ClientKey()))
	temporary := t.TempDir()
	for _, name := range []string{"HOME", "KUBECONFIG", "KUBERNETES_SERVICE_HOST"} {
		t.Setenv(name, "")
	}
	t.Setenv("TMPDIR", temporary)
	for name, test := range map[string]struct {
		chart string
		args  []string
		env   session.Environment
		want  string
	}{
		"http, a usual branch": {chart: "git::" + repo.HTTPURL() + "//web", want: "name: newest"},
		"http, a tag":          {chart: "git::" + repo.HTTPURL() + "//web?ref=v1", want: "name: tagged"},
		"ssh": {chart: repo.SSHURL() + "//web", want: "name: newest",
			args: []string{"--ssh-privatekey-file", key, "--helm-repo-url-regex", strings.Replace(server.SSHURL(), "git@", "", 1)},
			env:  session.Environment{KnownHosts: server.KnownHosts()}},
	} {
		t.Run(name, func(t *testing.T) {
			repository(t, map[string]string{"app/fleet.yaml": "helm: {chart: \"" + test.chart + "\"}\n"})
			var out, errOut bytes.Buffer
			args := append([]string{"apply", "shop", "app", "-o", "-"}, test.args...)
			code := cli.Run(t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, test.env)
			if code != 0 || !strings.Contains(out.String(), test.want) {
				t.Errorf("exit code %d, want %q in:\n%s%s", code, test.want, out.String(), errOut.String())
			}
		})
	}
	left, err := os.ReadDir(temporary)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range left {
		if strings.HasPrefix(entry.Name(), "fleet-charts-") {
			t.Errorf("%s was left behind", entry.Name())
		}
	}
}
