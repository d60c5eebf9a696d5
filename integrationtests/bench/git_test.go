package bench

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// gitWitness stands before a git server and notes when an answer first names a commit: before that moment
// nobody can have seen it.
type gitWitness struct {
	target string
	server *httptest.Server

	mu    sync.Mutex
	named map[string]time.Time
}

// commitID is a reference's, which stands before its name; the length of its line may stand before it.
var commitID = regexp.MustCompile(`([0-9a-f]{40})[ \n]`)

func witness(target string) (*gitWitness, error) {
	address, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("stand before %s: %w", target, err)
	}
	g := &gitWitness{target: target, named: map[string]time.Time{}}
	g.server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:        func(request *httputil.ProxyRequest) { request.SetURL(address) },
		ModifyResponse: g.note,
	})
	return g, nil
}

// through returns the address by which a repository of the server is reached under the witness's eyes.
func (g *gitWitness) through(url string) string {
	return g.server.URL + strings.TrimPrefix(url, g.target)
}

// note reads all of an answer before it is passed on: which of them lists references depends on the version
// of git's protocol.
func (g *gitWitness) note(response *http.Response) error {
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(answer))
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	for _, id := range commitID.FindAllSubmatch(answer, -1) {
		if _, known := g.named[string(id[1])]; !known {
			g.named[string(id[1])] = now
		}
	}
	return nil
}

// seen returns when an answer first named a commit.
func (g *gitWitness) seen(t testing.TB, commit string) time.Time {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	at, known := g.named[commit]
	if !known {
		t.Fatalf("commit %s is in no answer of the git server", commit)
	}
	return at
}

func (g *gitWitness) close() { g.server.Close() }

func TestWitness(t *testing.T) {
	commit := strings.Repeat("ab", 20)
	answer := "0000"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
	defer server.Close()
	g, err := witness(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	ask := func() {
		t.Helper()
		response, err := http.Get(g.through(server.URL + "/x.git"))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if got, err := io.ReadAll(response.Body); err != nil || string(got) != answer {
			t.Errorf("passed on %q, %v, want %q", got, err, answer)
		}
	}
	ask()
	if len(g.named) != 0 {
		t.Errorf("noted %v", g.named)
	}
	answer = "003d" + commit + " refs/heads/master\n"
	ask()
	first := g.seen(t, commit)
	ask()
	if again := g.seen(t, commit); !again.Equal(first) {
		t.Errorf("first seen at %s, then at %s", first, again)
	}
}
