package charts

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/fairlead-dev/fairlead/pkg/bundle/fetch"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

func TestCredentials(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	password, ca := file("password", "secret\n"), file("ca", "PEM")
	byPath := file("by-path", "app: {username: other, password: p}\n")
	missing := filepath.Join(dir, "missing")
	for name, test := range map[string]struct {
		env  session.Environment
		args []string
		want fetch.Credentials
	}{
		"none": {want: fetch.Credentials{}},
		"both": {args: []string{"--username", "me", "--password-file", password, "--helm-repo-url-regex", "https://x/"},
			want: fetch.Credentials{Username: "me", Password: "secret", URLRegex: "https://x/"}},
		"environment":              {env: session.Environment{HelmUsername: "me"}, args: []string{"--password-file", password}, want: fetch.Credentials{Username: "me", Password: "secret"}},
		"user name alone":          {args: []string{"--username", "me"}, want: fetch.Credentials{}},
		"password alone":           {args: []string{"--password-file", password}, want: fetch.Credentials{}},
		"files that are not there": {args: []string{"--username", "me", "--password-file", missing, "--cacerts-file", missing, "--helm-credentials-by-path-file", missing}, want: fetch.Credentials{}},
		"trust": {args: []string{"--cacerts-file", ca, "--helm-basic-http", "--helm-insecure-skip-tls"},
			want: fetch.Credentials{CABundle: []byte("PEM"), BasicHTTP: true, InsecureSkipTLSVerify: true}},
		"ssh": {env: session.Environment{KnownHosts: "host key"}, args: []string{"--ssh-privatekey-file", ca},
			want: fetch.Credentials{SSHKey: []byte("PEM"), KnownHosts: "host key"}},
		"by path": {args: []string{"--username", "me", "--password-file", password, "--helm-credentials-by-path-file", byPath},
			want: fetch.Credentials{Username: "other", Password: "p", AnyURL: true, CABundle: []byte{}, SSHKey: []byte{}}},
	} {
		t.Run(name, func(t *testing.T) {
			flags := &Flags{}
			set := pflag.NewFlagSet("test", pflag.ContinueOnError)
			flags.Add(set, test.env)
			if err := set.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			credentials, err := flags.credentials(test.env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, credentials("app")); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
		})
	}
}
