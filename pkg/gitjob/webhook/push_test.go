package webhook

import (
	"errors"
	"net/http"
	"testing"
	"testing/quick"

	"github.com/google/go-cmp/cmp"
)

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

const commit = "0123456789abcdef0123456789abcdef01234567"

func githubPush(ref string) []byte {
	return []byte(`{"ref":"` + ref + `","after":"` + commit + `","repository":{"html_url":"https://github.com/Team/App",` +
		`"clone_url":"https://github.com/Team/App.git","ssh_url":"git@github.com:Team/App.git"}}`)
}

func TestParse(t *testing.T) {
	github := []Repository{{"github.com", "team/app"}}
	for name, test := range map[string]struct {
		header http.Header
		body   string
		want   Push
	}{
		"github branch": {header("X-GitHub-Event", "push"), string(githubPush("refs/heads/main")), Push{github, []Change{{Branch, "main", commit}}}},
		"github tag":    {header("X-GitHub-Event", "push"), string(githubPush("refs/tags/v1/x")), Push{github, []Change{{Tag, "v1/x", commit}}}},
		"github form": {header("X-GitHub-Event", "push", "Content-Type", "application/x-www-form-urlencoded"),
			"payload=%7B%22ref%22%3A%22refs%2Fheads%2Fmain%22%2C%22repository%22%3A%7B%22html_url%22%3A%22https%3A%2F%2Fgithub.com%2Fteam%2Fapp%22%7D%7D",
			Push{github, []Change{{Branch, "main", ""}}}},
		"github deletion": {header("X-GitHub-Event", "push"),
			`{"ref":"refs/heads/old","after":"0000000000000000000000000000000000000000","repository":{"html_url":"https://github.com/team/app"}}`,
			Push{github, []Change{{Branch, "old", ""}}}},
		"gitea": {header("X-Gogs-Event", "push", "X-GitHub-Event", "push"),
			`{"ref":"refs/heads/main","after":"` + commit + `","repository":{"html_url":"https://git.example.com/team/app","ssh_url":"ssh://git@git.example.com:2222/team/app.git"}}`,
			Push{[]Repository{{"git.example.com", "team/app"}}, []Change{{Branch, "main", commit}}}},
		"gitlab": {header("X-Gitlab-Event", "Push Hook"),
			`{"object_kind":"push","ref":"refs/heads/main","after":"` + commit + `","checkout_sha":"` + commit + `",` +
				`"project":{"web_url":"https://gitlab.example.com/a/b/c","git_http_url":"https://gitlab.example.com/a/b/c.git","git_ssh_url":"git@ssh.gitlab.example.com:a/b/c.git"}}`,
			Push{[]Repository{{"gitlab.example.com", "a/b/c"}, {"ssh.gitlab.example.com", "a/b/c"}}, []Change{{Branch, "main", commit}}}},
		"gitlab annotated tag": {header("X-Gitlab-Event", "Tag Push Hook"),
			`{"object_kind":"tag_push","ref":"refs/tags/v1","after":"ffffffffffffffffffffffffffffffffffffffff","checkout_sha":"` + commit + `","project":{"web_url":"https://gitlab.com/a/b"}}`,
			Push{[]Repository{{"gitlab.com", "a/b"}}, []Change{{Tag, "v1", commit}}}},
		"gitlab system hook": {header("X-Gitlab-Event", "System Hook"),
			`{"event_name":"push","ref":"refs/heads/main","after":"` + commit + `","project":{"web_url":"https://gitlab.com/a/b"}}`,
			Push{[]Repository{{"gitlab.com", "a/b"}}, []Change{{Branch, "main", commit}}}},
		"bitbucket cloud": {header("X-Hook-UUID", "x", "X-Event-Key", "repo:push"),
			`{"push":{"changes":[{"new":{"type":"branch","name":"main","target":{"hash":"` + commit + `"}}},{"old":{"type":"tag","name":"v1"},"new":null}]},` +
				`"repository":{"full_name":"team/app","links":{"html":{"href":"https://bitbucket.org/team/app"}}}}`,
			Push{[]Repository{{"bitbucket.org", "team/app"}}, []Change{{Branch, "main", commit}, {Tag, "v1", ""}}}},
		"bitbucket server": {header("X-Event-Key", "repo:refs_changed"),
			`{"changes":[{"ref":{"id":"refs/heads/main"},"toHash":"` + commit + `"}],"repository":{"slug":"app","project":{"key":"TEAM"},"links":{"clone":[` +
				`{"href":"https://bitbucket.example.com/scm/team/app.git"},{"href":"ssh://git@bitbucket.example.com:7999/team/app.git"}]}}}`,
			Push{[]Repository{{"bitbucket.example.com", "team/app"}}, []Change{{Branch, "main", commit}}}},
		"bitbucket server without links": {header("X-Event-Key", "repo:refs_changed"),
			`{"changes":[{"ref":{"id":"refs/tags/v1"},"toHash":"` + commit + `"}],"repository":{"slug":"app","project":{"key":"TEAM"}}}`,
			Push{[]Repository{{"", "team/app"}}, []Change{{Tag, "v1", commit}}}},
		"azure": {header(),
			`{"eventType":"git.push","resource":{"refUpdates":[{"name":"refs/heads/main","newObjectId":"` + commit + `"}],` +
				`"repository":{"remoteUrl":"https://org@dev.azure.com/org/My%20Project/_git/app"}}}`,
			Push{[]Repository{{"dev.azure.com", "org/my project/app"}}, []Change{{Branch, "main", commit}}}},
		"note is no change": {header("X-GitHub-Event", "push"), string(githubPush("refs/notes/x")), Push{github, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.header, []byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("push (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		header  http.Header
		body    string
		ignored bool
	}{
		"github ping":    {header("X-GitHub-Event", "ping"), `{}`, true},
		"github issue":   {header("X-GitHub-Event", "issues"), `{}`, true},
		"gitlab note":    {header("X-Gitlab-Event", "Note Hook"), `{"object_kind":"note"}`, true},
		"bitbucket ping": {header("X-Event-Key", "diagnostics:ping"), `{"test":true}`, true},
		"azure other":    {header(), `{"eventType":"git.pullrequest.created"}`, true},
		"not JSON":       {header("X-GitHub-Event", "push"), `<xml/>`, false},
		"empty":          {header("X-GitHub-Event", "push"), ``, false},
		"wrong types":    {header("X-GitHub-Event", "push"), `{"ref":1}`, false},
		"no repository":  {header("X-GitHub-Event", "push"), `{"ref":"refs/heads/main"}`, false},
		"local path":     {header("X-GitHub-Event", "push"), `{"ref":"refs/heads/main","repository":{"clone_url":"file:///etc"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			push, err := Parse(test.header, []byte(test.body))
			if err == nil || errors.Is(err, ErrIgnored) != test.ignored {
				t.Errorf("parsed %+v, error %v", push, err)
			}
		})
	}
}

func TestMoves(t *testing.T) {
	push := Push{Changes: []Change{{Branch, "main", "1"}, {Tag, "v1", "2"}, {Branch, "both", "3"}, {Tag, "both", "4"}, {Branch, "master", "5"}}}
	for name, test := range map[string]struct{ branch, revision, want string }{
		"branch":               {"main", "", "1"},
		"full branch":          {"refs/heads/main", "", "1"},
		"other branch":         {"dev", "", ""},
		"no branch is master":  {"", "", "5"},
		"a tag is no branch":   {"v1", "", ""},
		"tag":                  {"", "v1", "2"},
		"revision wins":        {"main", "v1", "2"},
		"full tag":             {"", "refs/tags/both", "4"},
		"a commit never moves": {"main", commit, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, moved := push.Moves(test.branch, test.revision)
			if got != test.want || moved != (test.want != "") {
				t.Errorf("moved to %q, %v; want %q", got, moved, test.want)
			}
		})
	}
}

func TestConcerns(t *testing.T) {
	push := Push{Repositories: []Repository{{"github.com", "team/app"}, {"", "proj/app"}}}
	for url, want := range map[string]bool{
		"https://github.com/team/app.git":                true,
		"git@github.com:Team/App":                        true,
		"https://github.com/team/app2":                   false,
		"https://evil.example.com/team/app":              false,
		"https://bitbucket.example.com/scm/PROJ/app.git": true,
		"": false,
	} {
		if got := push.Concerns(url); got != want {
			t.Errorf("%s: %v", url, got)
		}
	}
}

func TestEmptySecretVerifiesNothing(t *testing.T) {
	headers := map[Provider]http.Header{
		GitHub: header("X-GitHub-Event", "push"), GitLab: header("X-Gitlab-Event", "x"), Gogs: header("X-Gogs-Event", "push"),
		BitbucketCloud: header("X-Hook-UUID", "{}"), BitbucketServer: header("X-Event-Key", "x"), Azure: header("Authorization", "Basic Og=="),
	}
	never := func(body []byte, key string) bool {
		for provider, h := range headers {
			for _, secret := range []map[string][]byte{nil, {}, {string(provider): nil}, {string(provider): []byte("\n")}, {"other" + key: []byte(key)}} {
				if Verify(h, body, secret) == nil {
					t.Errorf("%s verified with %v", provider, secret)
					return false
				}
			}
		}
		return true
	}
	if err := quick.Check(never, nil); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("X-GitHub-Event", "push", "", githubPush("refs/heads/main"))
	f.Add("X-GitHub-Event", "push", "application/x-www-form-urlencoded", []byte("payload=%7B%7D"))
	f.Add("X-Gitlab-Event", "Push Hook", "", []byte(`{"object_kind":"push","ref":"refs/heads/x","project":{"web_url":"https://h/p"}}`))
	f.Add("X-Hook-UUID", "u", "", []byte(`{"push":{"changes":[{"new":null,"old":null}]}}`))
	f.Add("X-Event-Key", "repo:refs_changed", "", []byte(`{"changes":[{}],"repository":{"slug":"a","project":{"key":"b"}}}`))
	f.Add("X-Event-Key", "repo:push", "", []byte(`{}`))
	f.Add("", "", "", []byte(`{"eventType":"git.push","resource":{"repository":{"remoteUrl":"https://o@dev.azure.com/o/p/_git/r"}}}`))
	f.Fuzz(func(t *testing.T, name, value, kind string, body []byte) {
		h := header("Content-Type", kind)
		if name != "" {
			h.Set(name, value)
		}
		push, err := Parse(h, body)
		if err != nil {
			return
		}
		if len(push.Repositories) == 0 {
			t.Error("a push to no repository")
		}
		for _, change := range push.Changes {
			if change.Name == "" || change.Kind == "" {
				t.Errorf("change %+v", change)
			}
		}
		if Verify(h, body, map[string][]byte{"github": []byte("k"), "gitlab": []byte("k"), "gogs": []byte("k"), "bitbucket-server": []byte("k")}) == nil && value != "k" && h.Get("X-Gitlab-Token") == "" && h.Get("X-Hub-Signature-256") == "" {
			t.Error("verified without a proof")
		}
	})
}
