package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: plain
clusters: [{name: c, cluster: {server: "https://hub.example.test"}}]
users: [{name: u, user: {token: t}}]
contexts:
- {name: plain, context: {cluster: c, user: u}}
- {name: placed, context: {cluster: c, user: u, namespace: mine}}
`

func open(t *testing.T, env Environment, args ...string) *Session {
	t.Helper()
	s := New(genericiooptions.NewTestIOStreamsDiscard(), env)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWorkspace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", "")
	t.Setenv("KUBECONFIG", file)
	for name, test := range map[string]struct {
		env  Environment
		args []string
		want string
	}{
		"nothing":               {want: WorkspaceNamespace},
		"the context's":         {args: []string{"--context", "placed"}, want: "mine"},
		"environment":           {env: Environment{Namespace: "env"}, args: []string{"--context", "placed"}, want: "env"},
		"flag":                  {env: Environment{Namespace: "env"}, args: []string{"-n", "flag"}, want: "flag"},
		"a context without one": {args: []string{"--context", "plain"}, want: WorkspaceNamespace},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := open(t, test.env, test.args...).Workspace(); err != nil || got != test.want {
				t.Errorf("workspace %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestRESTConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", "")
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, test := range map[string]struct {
		args     []string
		wantHost string
		wantErr  string
	}{
		"none":        {nil, "", "no cluster is known"},
		"file":        {[]string{"--kubeconfig", file}, "https://hub.example.test", ""},
		"server":      {[]string{"--server", "https://other.example.test"}, "https://other.example.test", ""},
		"no file":     {[]string{"--kubeconfig", file + "x"}, "", "read kubeconfig"},
		"no context":  {[]string{"--kubeconfig", file, "--context", "x"}, "", "read kubeconfig"},
		"impersonate": {[]string{"--kubeconfig", file, "--as", "me", "--request-timeout", "3s"}, "https://hub.example.test", ""},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := open(t, Environment{}, test.args...).RESTConfig()
			switch {
			case test.wantErr != "":
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want %q", err, test.wantErr)
				}
			case err != nil:
				t.Error(err)
			case config.Host != test.wantHost || config.QPS >= 0:
				t.Errorf("host %s, rate limit %v, want %s and none", config.Host, config.QPS, test.wantHost)
			}
		})
	}
}

func TestNamespaceOf(t *testing.T) {
	env := Environment{Namespace: "env"}
	for name, test := range map[string]struct {
		env  Environment
		args []string
		own  string
		want string
	}{
		"flag":        {env, []string{"-n", "flag"}, "own", "flag"},
		"own":         {env, nil, "own", "own"},
		"environment": {env, nil, "", "env"},
		"nothing":     {Environment{}, nil, "", LocalNamespace},
	} {
		if got := open(t, test.env, test.args...).NamespaceOf(test.own); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
