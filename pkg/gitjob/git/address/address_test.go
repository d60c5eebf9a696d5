package address

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		raw                            string
		wantString, wantDial, wantPath string
		wantUser                       string
	}{
		"https":          {"https://Example.com/a/b.git", "https://Example.com/a/b.git", "example.com:443", "/a/b.git", ""},
		"https password": {"https://me:p%40ss@example.com/a", "https://example.com/a", "example.com:443", "/a", "me"},
		"http port":      {"http://example.com:8080/a", "http://example.com:8080/a", "example.com:8080", "/a", ""},
		"ssh":            {"ssh://git@example.com:2222/a/b", "ssh://git@example.com:2222/a/b", "example.com:2222", "/a/b", "git"},
		"ssh home":       {"ssh://me@example.com/~me/b", "me@example.com:~me/b", "example.com:22", "~me/b", "me"},
		"ssh no user":    {"ssh://example.com/a", "ssh://git@example.com/a", "example.com:22", "/a", "git"},
		"git+ssh":        {"git+ssh://example.com/a", "ssh://git@example.com/a", "example.com:22", "/a", "git"},
		"scp":            {"git@example.com:team/app.git", "git@example.com:team/app.git", "example.com:22", "team/app.git", "git"},
		"scp no user":    {"example.com:team/app", "git@example.com:team/app", "example.com:22", "team/app", "git"},
		"scp absolute":   {"me@example.com:/srv/app", "ssh://me@example.com/srv/app", "example.com:22", "/srv/app", "me"},
		"scp ipv6":       {"git@[::1]:app", "git@[::1]:app", "[::1]:22", "app", "git"},
		"https ipv6":     {"https://[::1]:8443/app", "https://[::1]:8443/app", "[::1]:8443", "/app", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.raw)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != test.wantString || got.HostPort() != test.wantDial || got.Path != test.wantPath || got.Username != test.wantUser {
				t.Errorf("got %q, dial %q, path %q, user %q", got.String(), got.HostPort(), got.Path, got.Username)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, raw := range map[string]string{
		"empty":          "",
		"file":           "file:///etc",
		"absolute path":  "/etc/repo",
		"relative path":  "./repo:x/y",
		"helper":         "ext::sh -c id",
		"helper bare":    "ext::id",
		"helper url":     "http::https://example.com/x",
		"git protocol":   "git://example.com/a",
		"no host":        "https:///a",
		"no path":        "https://example.com/",
		"newline":        "https://example.com/a\nb",
		"escaped line":   "https://example.com/a%0ab",
		"option path":    "git@example.com:-oProxyCommand=x",
		"option host":    "ssh://-oProxyCommand=x/a",
		"secret, broken": "https://user:hunter2@exa mple.com/%zz",
		"secret scheme":  "ftp://user:hunter2@example.com/a",
		"secret slash":   "ftp://user:hunter2/x@example.com/a",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(raw)
			if err == nil {
				t.Fatalf("read as %+v", got)
			}
			if fault.ClassOf(err) != fault.Stalled || fault.ReasonOf(err) != ReasonInvalidURL {
				t.Errorf("class %s, reason %s", fault.ClassOf(err), fault.ReasonOf(err))
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error shows the password: %v", err)
			}
		})
	}
}

func TestCanonicalIsTheSameForAllForms(t *testing.T) {
	for name, test := range map[string]struct {
		want  string
		forms []string
	}{
		"github": {"github.com team/app", []string{
			"https://github.com/Team/App", "https://github.com/team/app.git", "https://token@GitHub.com/team/app.git/",
			"git@github.com:team/app.git", "ssh://git@github.com/team/app", "ssh://git@ssh.github.com:443/team/app.git", "http://github.com:80/team//app",
		}},
		"gitlab groups": {"gitlab.example.com a/b/c", []string{
			"https://gitlab.example.com/a/b/c.git", "git@gitlab.example.com:a/b/c.git", "ssh://git@gitlab.example.com:2222/a/b/c",
		}},
		"azure": {"dev.azure.com org/my project/repo", []string{
			"https://dev.azure.com/org/My%20Project/_git/repo", "https://org@dev.azure.com/org/My%20Project/_git/repo",
			"git@ssh.dev.azure.com:v3/org/My%20Project/repo", "https://org.visualstudio.com/My%20Project/_git/repo",
			"https://org.visualstudio.com/DefaultCollection/My%20Project/_git/repo", "org@vs-ssh.visualstudio.com:v3/org/My%20Project/repo",
		}},
		"azure same name": {"dev.azure.com org/app/app", []string{"https://dev.azure.com/org/_git/app", "git@ssh.dev.azure.com:v3/org/app/app"}},
		"bitbucket server": {"bitbucket.example.com proj/app", []string{
			"https://bitbucket.example.com/scm/PROJ/app.git", "ssh://git@bitbucket.example.com:7999/proj/app.git",
			"https://bitbucket.example.com/projects/PROJ/repos/app/browse",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, form := range test.forms {
				host, repository, err := Canonical(form)
				if err != nil {
					t.Errorf("%s: %v", form, err)
				} else if got := host + " " + repository; got != test.want {
					t.Errorf("%s is %q, want %q", form, got, test.want)
				}
			}
		})
	}
}

func TestJoin(t *testing.T) {
	for name, test := range map[string]struct{ parent, reference, want string }{
		"sibling":       {"https://u:p@example.com/team/app.git", "../lib.git", "https://example.com/team/lib.git"},
		"child":         {"https://example.com/team/app", "./lib", "https://example.com/team/app/lib"},
		"scp sibling":   {"git@example.com:team/app.git", "../lib.git", "git@example.com:team/lib.git"},
		"other host":    {"https://example.com/a/b", "https://other.example.com/c", "https://other.example.com/c"},
		"out of root":   {"https://example.com/a/b", "../../../..", ""},
		"out of home":   {"git@example.com:a/b", "../../../x", ""},
		"helper":        {"https://example.com/a/b", "ext::id", ""},
		"local":         {"https://example.com/a/b", "/etc", ""},
		"other repo up": {"https://example.com/a/b", "../../c/d", "https://example.com/c/d"},
	} {
		t.Run(name, func(t *testing.T) {
			parent, err := Parse(test.parent)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parent.Join(test.reference)
			if test.want == "" {
				if err == nil {
					t.Fatalf("joined to %s", got)
				}
				return
			}
			if err != nil || got.String() != test.want {
				t.Errorf("got %s, %v; want %s", got, err, test.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"https://u:p@example.com/a", "git@h:a/b", "ext::x", "ssh://[::1]:22/~a", "a:b@c:d/e", "https://dev.azure.com/o/_git/r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := Parse(raw)
		if err != nil {
			if fault.ClassOf(err) != fault.Stalled {
				t.Errorf("class %s", fault.ClassOf(err))
			}
			return
		}
		if a.Host == "" || a.Path == "" || (a.Scheme != "http" && a.Scheme != "https" && a.Scheme != "ssh") {
			t.Errorf("%q became %+v", raw, a)
		}
		host, repository, err := Canonical(raw)
		if err != nil {
			t.Fatalf("%q parses, but has no canonical form: %v", raw, err)
		}
		if host != strings.ToLower(host) || strings.HasPrefix(repository, "/") {
			t.Errorf("%q: host %q, repository %q", raw, host, repository)
		}
	})
}
