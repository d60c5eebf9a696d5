package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// hub is what a Receiver talks to.
type hub struct {
	repos   []GitRepo
	listErr error
	// secrets by name; the empty name is the installation's.
	secrets map[string]map[string][]byte
	broken  string
	told    []string
}

func (h *hub) GitRepos(context.Context) ([]GitRepo, error) { return h.repos, h.listErr }

func (h *hub) WebhookSecret(_ context.Context, repo GitRepo) (map[string][]byte, error) {
	secret, found := h.secrets[repo.Secret]
	if !found && repo.Secret != "" {
		return nil, errors.New("no such Secret")
	}
	return secret, nil
}

func (h *hub) Notify(_ context.Context, repo GitRepo, commit string) error {
	if repo.Name == h.broken {
		return errors.New("queue is closed")
	}
	h.told = append(h.told, repo.Name+" "+commit)
	return nil
}

func sign(body []byte, key string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func repo(name, url, branch, revision, secret string) GitRepo {
	return GitRepo{Namespace: "fleet-default", Name: name, URL: url, Branch: branch, Revision: revision, Secret: secret}
}

func TestReceiver(t *testing.T) {
	const url = "git@github.com:team/app.git"
	body := githubPush("refs/heads/main")
	signed := header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+sign(body, "key"))
	unsigned := header("X-GitHub-Event", "push")
	forged := header("X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+sign(body, "guess"))
	global := map[string]map[string][]byte{"": {"github": []byte("key\n")}}
	own := map[string]map[string][]byte{"": {"github": []byte("other")}, "mine": {"github": []byte("key")}}
	main := repo("main", url, "main", "", "")
	for name, test := range map[string]struct {
		hub        hub
		header     http.Header
		unsigned   bool
		wantStatus int
		wantTold   []string
	}{
		"signed":                   {hub{repos: []GitRepo{main}, secrets: global}, signed, false, 200, []string{"main " + commit}},
		"unsigned":                 {hub{repos: []GitRepo{main}, secrets: global}, unsigned, false, 401, nil},
		"forged":                   {hub{repos: []GitRepo{main}, secrets: global}, forged, false, 401, nil},
		"no secret anywhere":       {hub{repos: []GitRepo{main}}, unsigned, false, 401, nil},
		"unsigned allowed":         {hub{repos: []GitRepo{main}}, unsigned, true, 200, []string{"main " + commit}},
		"allowed, but has secret":  {hub{repos: []GitRepo{main}, secrets: global}, unsigned, true, 401, nil},
		"secret lacks the key":     {hub{repos: []GitRepo{main}, secrets: map[string]map[string][]byte{"": {"gitlab": []byte("key")}}}, unsigned, true, 401, nil},
		"unknown repository":       {hub{repos: []GitRepo{repo("x", "https://github.com/x/y", "main", "", "")}, secrets: global}, signed, false, 200, nil},
		"unknown and unsigned":     {hub{secrets: global}, unsigned, false, 401, nil},
		"other branch":             {hub{repos: []GitRepo{repo("dev", url, "dev", "", "")}, secrets: global}, signed, false, 200, nil},
		"no branch is not any":     {hub{repos: []GitRepo{repo("none", url, "", "", "")}, secrets: global}, signed, false, 200, nil},
		"pinned commit":            {hub{repos: []GitRepo{repo("pin", url, "main", commit, "")}, secrets: global}, signed, false, 200, nil},
		"own secret":               {hub{repos: []GitRepo{repo("own", url, "main", "", "mine")}, secrets: own}, signed, false, 200, []string{"own " + commit}},
		"other's secret":           {hub{repos: []GitRepo{main, repo("own", url, "main", "", "mine")}, secrets: own}, signed, false, 200, []string{"own " + commit}},
		"missing secret of one":    {hub{repos: []GitRepo{repo("bad", url, "main", "", "gone"), main}, secrets: global}, signed, false, 500, []string{"main " + commit}},
		"one cannot be told":       {hub{repos: []GitRepo{repo("stuck", url, "main", "", ""), main}, secrets: global, broken: "stuck"}, signed, false, 500, []string{"main " + commit}},
		"GitRepos cannot be read":  {hub{listErr: errors.New("no API"), secrets: global}, signed, false, 500, nil},
		"ping needs no signature":  {hub{}, header("X-GitHub-Event", "ping"), false, 200, nil},
		"unreadable":               {hub{}, header("X-GitHub-Event", "push", "Content-Type", "application/x-www-form-urlencoded"), false, 400, nil},
		"other provider's message": {hub{repos: []GitRepo{main}, secrets: global}, header("X-Gitlab-Event", "Push Hook"), false, 200, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := test.hub
			receiver := NewReceiver(&h, &h, &h)
			receiver.AllowUnsigned = test.unsigned
			request := httptest.NewRequest(http.MethodPost, "/anything", strings.NewReader(string(body)))
			request.Header = test.header
			response := httptest.NewRecorder()
			receiver.ServeHTTP(response, request)
			if response.Code != test.wantStatus || !slices.Equal(h.told, test.wantTold) {
				t.Errorf("status %d %s, told %v; want %d, %v", response.Code, response.Body, h.told, test.wantStatus, test.wantTold)
			}
		})
	}
}

func TestReceiverOfOtherProviders(t *testing.T) {
	secret := map[string][]byte{
		"gitlab": []byte("key"), "gogs": []byte("key"), "bitbucket": []byte("UUID-1"), "bitbucket-server": []byte("key"),
		"azure-username": []byte("me"), "azure-password": []byte("key"),
	}
	azure := httptest.NewRequest(http.MethodPost, "/", nil)
	azure.SetBasicAuth("me", "key")
	wrong := httptest.NewRequest(http.MethodPost, "/", nil)
	wrong.SetBasicAuth("me", "guess")
	body := []byte("{}")
	for name, test := range map[string]struct {
		header http.Header
		want   bool
	}{
		"gitlab":                 {header("X-Gitlab-Event", "x", "X-Gitlab-Token", "key"), true},
		"gitlab wrong":           {header("X-Gitlab-Event", "x", "X-Gitlab-Token", "ke"), false},
		"gogs":                   {header("X-Gogs-Event", "push", "X-Gogs-Signature", sign(body, "key")), true},
		"gogs wrong":             {header("X-Gogs-Event", "push", "X-Gogs-Signature", sign(body, "kez")), false},
		"gogs as github":         {header("X-Gogs-Event", "push", "X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+sign(body, "key")), false},
		"bitbucket":              {header("X-Hook-UUID", "{uuid-1}", "X-Event-Key", "repo:push"), true},
		"bitbucket wrong":        {header("X-Hook-UUID", "{uuid-2}", "X-Event-Key", "repo:push"), false},
		"bitbucket server":       {header("X-Event-Key", "repo:refs_changed", "X-Hub-Signature", "sha256="+sign(body, "key")), true},
		"bitbucket server plain": {header("X-Event-Key", "repo:refs_changed", "X-Hub-Signature", sign(body, "key")), false},
		"azure":                  {azure.Header, true},
		"azure wrong":            {wrong.Header, false},
		"azure none":             {header(), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Verify(test.header, body, secret) == nil; got != test.want {
				t.Errorf("verified: %v", got)
			}
		})
	}
}

func TestReceiverRefusesMethodsAndLargeBodies(t *testing.T) {
	h := &hub{}
	receiver := NewReceiver(h, h, h)
	receiver.MaxBody = 10
	for name, test := range map[string]struct {
		method, body string
		want         int
	}{
		"get":   {http.MethodGet, "", 405},
		"put":   {http.MethodPut, "{}", 405},
		"large": {http.MethodPost, strings.Repeat("x", 11), 413},
	} {
		t.Run(name, func(t *testing.T) {
			response := httptest.NewRecorder()
			receiver.ServeHTTP(response, httptest.NewRequest(test.method, "/", strings.NewReader(test.body)))
			if response.Code != test.want {
				t.Errorf("status %d, want %d", response.Code, test.want)
			}
		})
	}
}
