package git_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
	"github.com/fairlead-dev/fairlead/integrationtests/gitserver/gitservertest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/store"
)

// clock is a clock that moves when told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newService(t *testing.T, change func(*git.Options)) *git.Service {
	t.Helper()
	options := git.Options{Dir: t.TempDir()}
	if change != nil {
		change(&options)
	}
	service, err := git.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return service
}

func checkout(t *testing.T, service *git.Service, source git.Source, commit string) *store.Tree {
	t.Helper()
	tree, err := service.Checkout(t.Context(), source, commit)
	if err != nil {
		t.Fatalf("checkout: %v", err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return tree
}

func wantFile(t *testing.T, tree fs.FS, name, want string) {
	t.Helper()
	got, err := fs.ReadFile(tree, name)
	if err != nil || string(got) != want {
		t.Errorf("%s is %q, %v; want %q", name, got, err, want)
	}
}

func wantFault(t *testing.T, err error, class fault.Class, reason string, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", reason)
	}
	if fault.ClassOf(err) != class || fault.ReasonOf(err) != reason {
		t.Errorf("%s %s: %v; want %s %s", fault.ClassOf(err), fault.ReasonOf(err), err, class, reason)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error does not say %q: %v", word, err)
		}
	}
}

func sshSource(server *gitserver.Server, repo gitservertest.Repo) git.Source {
	return git.Source{URL: repo.SSHURL(), Auth: git.Auth{SSHKey: server.ClientKey(), KnownHosts: server.KnownHosts()}}
}

func TestResolveAndCheckout(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "team/app")
	first := repo.Commit(map[string]string{"a.txt": "1"})
	repo.Tag("light", "")
	second := repo.Commit(map[string]string{"a.txt": "2"})
	repo.Tag("v1.0.0", "annotated")
	repo.Branch("dev")
	third := repo.Commit(map[string]string{"a.txt": "3", "sub/b.txt": "b"})
	repo.Tag("dev", "a tag named as a branch is")
	fourth := repo.Commit(map[string]string{"a.txt": "4"})

	transports := map[string]git.Source{
		"http":  {URL: repo.HTTPURL()},
		"https": {URL: repo.HTTPSURL(), CABundle: server.CABundle()},
		"any":   {URL: repo.HTTPSURL(), InsecureSkipTLSVerify: true},
		"ssh":   sshSource(server, repo),
	}
	for name, test := range map[string]struct{ branch, revision, wantCommit, wantContent string }{
		"default branch":         {"", "", second, "2"},
		"branch":                 {"dev", "", fourth, "4"},
		"full branch":            {"refs/heads/dev", "", fourth, "4"},
		"light tag":              {"", "light", first, "1"},
		"annotated tag":          {"", "v1.0.0", second, "2"},
		"tag before branch":      {"", "dev", third, "3"},
		"full branch revision":   {"", "refs/heads/dev", fourth, "4"},
		"branch as revision":     {"", "master", second, "2"},
		"revision before branch": {"dev", "light", first, "1"},
		"commit":                 {"", first, first, "1"},
	} {
		for transport, source := range transports {
			t.Run(name+"/"+transport, func(t *testing.T) {
				service := newService(t, nil)
				source.Branch, source.Revision = test.branch, test.revision
				commit, err := service.Resolve(t.Context(), source, 0)
				if err != nil || commit != test.wantCommit {
					t.Fatalf("resolved %q, %v; want %q", commit, err, test.wantCommit)
				}
				wantFile(t, checkout(t, service, source, commit), "a.txt", test.wantContent)
			})
		}
	}
}

func TestTreeIsAFileSystem(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	commit := repo.Commit(map[string]string{
		"a.txt": "a", "dir/b.txt": "b", "dir.txt": "sorts before dir in git", "dir/deep/run.sh": "#!/bin/sh\n",
		"empty": "", "link": "-> dir/b.txt", "dirlink": "-> dir/deep", "dir/up": "-> ../a.txt",
	})
	tree := checkout(t, newService(t, nil), git.Source{URL: repo.HTTPURL()}, commit)
	if err := fstest.TestFS(tree, "a.txt", "dir/b.txt", "dir.txt", "dir/deep/run.sh", "empty", "link", "dirlink", "dir/up"); err != nil {
		t.Error(err)
	}
	wantFile(t, tree, "link", "b")
	wantFile(t, tree, "dirlink/run.sh", "#!/bin/sh\n")
	wantFile(t, tree, "dir/up", "a")
	if info, err := fs.Stat(tree, "dirlink/run.sh"); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode %v, %v", info, err)
	}
	if target, err := tree.ReadLink("dir/up"); err != nil || target != "../a.txt" {
		t.Errorf("link to %q, %v", target, err)
	}
	if info, err := tree.Lstat("link"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("link is %v, %v", info, err)
	}
}

func TestSymbolicLinksStayInside(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	commit := repo.Commit(map[string]string{
		"absolute": "-> /etc/passwd", "dir/out": "-> ../../x", "loop": "-> loop", "dangling": "-> nothing",
		"dir/in": "-> ../dir/../file", "file": "f", "target/x": "x", "hop": "-> target/sub", "target/sub/y": "y",
	})
	tree := checkout(t, newService(t, nil), git.Source{URL: repo.HTTPURL()}, commit)
	for name, want := range map[string]error{"absolute": store.ErrOutside, "dir/out": store.ErrOutside, "dangling": fs.ErrNotExist, "../x": fs.ErrInvalid} {
		if _, err := tree.ReadFile(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if _, err := tree.ReadFile("loop"); err == nil {
		t.Error("loop was read")
	}
	wantFile(t, tree, "dir/in", "f")
	wantFile(t, tree, "hop/y", "y")
}

func TestManyCallersShareOneListingAndOneFetch(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	repo.Commit(map[string]string{"a.txt": "1"})
	service := newService(t, nil)
	source := git.Source{URL: repo.HTTPURL()}
	all := func(want string) {
		t.Helper()
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				commit, err := service.Resolve(t.Context(), source, time.Minute)
				if err != nil {
					t.Errorf("resolve: %v", err)
					return
				}
				tree, err := service.Checkout(t.Context(), source, commit)
				if err != nil {
					t.Errorf("checkout: %v", err)
					return
				}
				defer tree.Close()
				wantFile(t, tree, "a.txt", want)
			})
		}
		callers.Wait()
	}
	all("1")
	if got := server.Counts(); got.InfoRefs != 1 || got.UploadPack != 1 {
		t.Errorf("first round asked %+v", got)
	}
	all("1")
	if got := server.Counts(); got.InfoRefs != 1 || got.UploadPack != 1 {
		t.Errorf("second round asked %+v", got)
	}
}

func TestBranchesOfOneRepositoryShareListingAndMirror(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	repo.Commit(map[string]string{"a.txt": "0"})
	branches := []string{"a", "b", "c"}
	for _, branch := range branches {
		repo.Branch(branch)
		repo.Commit(map[string]string{"a.txt": branch})
	}
	dir := t.TempDir()
	service := newService(t, func(o *git.Options) { o.Dir = dir })
	for range 3 {
		for _, branch := range branches {
			source := git.Source{URL: repo.HTTPURL(), Branch: branch}
			commit, err := service.Resolve(t.Context(), source, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			wantFile(t, checkout(t, service, source, commit), "a.txt", branch)
		}
	}
	if got := server.Counts(); got.InfoRefs != 1 || got.UploadPack != len(branches) {
		t.Errorf("asked %+v", got)
	}
	if found := mirrors(t, dir); len(found) != 1 {
		t.Errorf("mirrors %v", found)
	}
}

func TestCallersAtOnceShareTheLatestListing(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	commit := repo.Commit(map[string]string{"a.txt": "1"})
	clock := newClock()
	service := newService(t, func(o *git.Options) { o.Now = clock.Now })
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			if got, err := service.Resolve(t.Context(), git.Source{URL: repo.HTTPURL()}, 0); err != nil || got != commit {
				t.Errorf("resolved %q, %v", got, err)
			}
		})
	}
	callers.Wait()
	if got := server.Counts().InfoRefs; got != 1 {
		t.Errorf("%d listings", got)
	}
}

// TestAListingUnderWayIsTooOldForWhoComesLater: a push may have come after the server began to answer.
func TestAListingUnderWayIsTooOldForWhoComesLater(t *testing.T) {
	before, after := strings.Repeat("a", 40), strings.Repeat("b", 40)
	asked, release := make(chan struct{}, 2), make(chan struct{})
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		commit := after
		if requests.Add(1) == 1 {
			commit = before
			asked <- struct{}{}
			<-release
		}
		line := commit + " refs/heads/master\x00side-band-64k"
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = fmt.Fprintf(w, "001e# service=git-upload-pack\n0000%04x%s0000", len(line)+4, line)
	}))
	defer server.Close()
	clock := newClock()
	service := newService(t, func(o *git.Options) { o.Now = clock.Now })
	resolve := func(want string) {
		if got, err := service.Resolve(t.Context(), git.Source{URL: server.URL + "/app"}, 0); err != nil || got != want {
			t.Errorf("resolved %q, %v; want %q", got, err, want)
		}
	}
	var callers sync.WaitGroup
	callers.Go(func() { resolve(before) })
	<-asked
	clock.advance(time.Second)
	for range 10 {
		callers.Go(func() { resolve(after) })
	}
	close(release)
	callers.Wait()
	if got := requests.Load(); got != 2 {
		t.Errorf("%d listings, want 2", got)
	}
}

func TestMaxAgeBoundsWhatIsUsedAgain(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	first := repo.Commit(map[string]string{"a.txt": "1"})
	clock := newClock()
	service := newService(t, func(o *git.Options) { o.Now = clock.Now })
	source := git.Source{URL: repo.HTTPURL()}
	resolve := func(maxAge time.Duration, want string) {
		t.Helper()
		if got, err := service.Resolve(t.Context(), source, maxAge); err != nil || got != want {
			t.Errorf("resolved %q, %v; want %q", got, err, want)
		}
	}
	resolve(time.Minute, first)
	second := repo.Commit(map[string]string{"a.txt": "2"})
	clock.advance(10 * time.Second)
	resolve(15*time.Second, first)
	resolve(5*time.Second, second)
	clock.advance(time.Second)
	third := repo.Commit(map[string]string{"a.txt": "3"})
	resolve(0, third)
	if got := server.Counts().InfoRefs; got != 3 {
		t.Errorf("%d listings, want 3", got)
	}
}

func TestFetchIsIncremental(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	random := make([]byte, 1<<16)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	big := hex.EncodeToString(random)
	files := map[string]string{"a.txt": "1"}
	for i := range 20 {
		files[strings.Repeat("d", i+1)+"/big.txt"] = big[i:]
	}
	first := repo.Commit(files)
	for name, source := range map[string]git.Source{"http": {URL: repo.HTTPURL()}, "ssh": sshSource(server, repo)} {
		t.Run(name, func(t *testing.T) {
			counter := &countingDialer{}
			service := newService(t, func(o *git.Options) { o.Dial = counter.dial })
			old := checkout(t, service, source, first)
			whole := counter.read()
			second := repo.Commit(map[string]string{"a.txt": name})
			tree := checkout(t, service, source, second)
			wantFile(t, tree, "a.txt", name)
			wantFile(t, tree, "dd/big.txt", big[1:])
			wantFile(t, old, "a.txt", "1")
			if update := counter.read() - whole; name == "ssh" && update > whole/4 {
				t.Errorf("the update read %d bytes, the whole %d", update, whole)
			}
		})
	}
}

// countingDialer counts the bytes read over the connections it makes.
type countingDialer struct {
	mu    sync.Mutex
	bytes int
}

func (d *countingDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	return countingConn{conn, d}, err
}

func (d *countingDialer) read() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes
}

type countingConn struct {
	net.Conn
	dialer *countingDialer
}

func (c countingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.dialer.mu.Lock()
	defer c.dialer.mu.Unlock()
	c.dialer.bytes += n
	return n, err
}

func TestOldCommitOfAServerThatServesOnlyTips(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	first := repo.Commit(map[string]string{"a.txt": "1"})
	repo.Commit(map[string]string{"a.txt": "2"})
	service := newService(t, nil)
	source := sshSource(server, repo)
	wantFile(t, checkout(t, service, source, first), "a.txt", "1")

	missing := strings.Repeat("12", 20)
	_, err := service.Checkout(t.Context(), source, missing)
	wantFault(t, err, fault.Stalled, "RevisionNotFound", missing)
	server.ResetCounts()
	_, err = service.Checkout(t.Context(), source, missing)
	wantFault(t, err, fault.Stalled, "RevisionNotFound", missing)
	if got := server.Counts().SSH; got > 2 {
		t.Errorf("asked %d times for a commit known to be absent", got)
	}
	wantFile(t, checkout(t, service, source, repo.Commit(map[string]string{"a.txt": "3"})), "a.txt", "3")
}

func TestCredentials(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "private")
	repo.Commit(map[string]string{"a.txt": "1"})
	repo.Private("user", "hunter2")
	token := gitservertest.NewRepo(t, server, "token")
	token.Commit(map[string]string{"a.txt": "1"})
	token.Private("hunter2", "hunter2")
	other := gitservertest.Start(t)

	withUser := strings.Replace(repo.HTTPURL(), "://", "://user:hunter2@", 1)
	for name, test := range map[string]struct {
		source git.Source
		reason string
		words  []string
	}{
		"basic":          {git.Source{URL: repo.HTTPURL(), Auth: git.Auth{Username: "user", Password: "hunter2"}}, "", nil},
		"token":          {git.Source{URL: token.HTTPURL(), Auth: git.Auth{Username: "hunter2", Password: "hunter2"}}, "", nil},
		"in the address": {git.Source{URL: withUser}, "", nil},
		"secret first":   {git.Source{URL: withUser, Auth: git.Auth{Username: "user", Password: "hunter2x"}}, "AuthenticationFailed", []string{"does not accept"}},
		"none":           {git.Source{URL: repo.HTTPURL()}, "AuthenticationFailed", []string{"clientSecretName", repo.HTTPURL()}},
		"wrong":          {git.Source{URL: repo.HTTPURL(), Auth: git.Auth{Username: "user", Password: "hunter2x"}}, "AuthenticationFailed", []string{"401"}},
		"ssh none":       {git.Source{URL: repo.SSHURL()}, "AuthenticationFailed", []string{"kubernetes.io/ssh-auth"}},
		"ssh wrong key":  {git.Source{URL: repo.SSHURL(), Auth: git.Auth{SSHKey: other.ClientKey(), KnownHosts: server.KnownHosts()}}, "AuthenticationFailed", []string{"SSH key"}},
		"key for http":   {git.Source{URL: repo.HTTPURL(), Auth: git.Auth{SSHKey: server.ClientKey()}}, "AuthenticationFailed", []string{"SSH key"}},
		"unknown host":   {git.Source{URL: repo.SSHURL(), Auth: git.Auth{SSHKey: server.ClientKey()}}, "HostKeyUnknown", []string{"SHA256:", strings.TrimSpace(server.KnownHosts())}},
		"changed host": {git.Source{URL: repo.SSHURL(), Auth: git.Auth{SSHKey: server.ClientKey(), KnownHosts: rehost(other, server)}},
			"HostKeyChanged", []string{"SHA256:", strings.TrimSpace(server.KnownHosts())}},
		"any host":         {git.Source{URL: repo.SSHURL(), Auth: git.Auth{SSHKey: server.ClientKey(), InsecureSkipHostKeyChecks: true}}, "", nil},
		"bad known_hosts":  {git.Source{URL: repo.SSHURL(), Auth: git.Auth{SSHKey: server.ClientKey(), KnownHosts: "host ssh-ed25519 garbage"}}, "InvalidKnownHosts", []string{"known_hosts"}},
		"unknown CA":       {git.Source{URL: repo.HTTPSURL()}, "TLSFailed", []string{"caBundle"}},
		"other CA":         {git.Source{URL: repo.HTTPSURL(), CABundle: other.CABundle()}, "TLSFailed", []string{"caBundle"}},
		"bad CA":           {git.Source{URL: repo.HTTPSURL(), CABundle: []byte("hunter2")}, "TLSFailed", []string{"caBundle"}},
		"no TLS":           {git.Source{URL: strings.Replace(repo.HTTPURL(), "http:", "https:", 1)}, "TLSFailed", nil},
		"no repository":    {git.Source{URL: server.HTTPURL() + "/nothing.git"}, "RepositoryNotFound", []string{"404"}},
		"no ssh repo":      {git.Source{URL: server.SSHURL() + "/nothing.git", Auth: git.Auth{SSHKey: server.ClientKey(), KnownHosts: server.KnownHosts()}}, "RepositoryNotFound", nil},
		"local":            {git.Source{URL: "file:///etc"}, "InvalidURL", nil},
		"transport helper": {git.Source{URL: "ext::sh -c id"}, "InvalidURL", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newService(t, nil).Resolve(t.Context(), test.source, 0)
			if test.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantFault(t, err, fault.Stalled, test.reason, test.words...)
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error shows a secret: %v", err)
			}
		})
	}
}

// rehost returns known_hosts with the key of one server under the address of another.
func rehost(key, at *gitserver.Server) string {
	host, _, _ := strings.Cut(at.KnownHosts(), " ")
	_, rest, _ := strings.Cut(key.KnownHosts(), " ")
	return host + " " + rest
}

func TestMissingNamesAreAnsweredWithNearOnes(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	repo.Commit(map[string]string{"a.txt": "1"})
	repo.Branch("production")
	repo.Tag("v1.2.3", "")
	empty := gitservertest.NewRepo(t, server, "empty")
	service := newService(t, nil)
	for name, test := range map[string]struct {
		source git.Source
		reason string
		words  []string
	}{
		"branch":   {git.Source{URL: repo.HTTPURL(), Branch: "prodution"}, "BranchNotFound", []string{`"prodution"`, "it has production, master"}},
		"revision": {git.Source{URL: repo.HTTPURL(), Revision: "v1.2.4"}, "RevisionNotFound", []string{`"v1.2.4"`, "v1.2.3"}},
		"empty":    {git.Source{URL: empty.HTTPURL()}, "BranchNotFound", []string{"empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := service.Resolve(t.Context(), test.source, time.Hour)
			wantFault(t, err, fault.Stalled, test.reason, test.words...)
		})
	}
}

func TestUnreachableHostIsLeftAlone(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	commit := repo.Commit(map[string]string{"a.txt": "1"})
	clock := newClock()
	service := newService(t, func(o *git.Options) { o.Now = clock.Now })
	source := git.Source{URL: repo.HTTPURL()}
	neighbour := git.Source{URL: server.HTTPURL() + "/neighbour.git"}
	server.SetFault(gitserver.Fault{Status: http.StatusBadGateway})

	_, err := service.Resolve(t.Context(), source, 0)
	wantFault(t, err, fault.Transient, "ServerFailed", "502", "next try after 03:04:06 UTC")
	again := err.Error()
	_, err = service.Resolve(t.Context(), source, 0)
	wantFault(t, err, fault.Transient, "ServerFailed", again)
	_, err = service.Resolve(t.Context(), neighbour, 0)
	wantFault(t, err, fault.Transient, "ServerFailed")
	if got := server.Counts().InfoRefs; got != 1 {
		t.Errorf("asked %d times while it should be left alone", got)
	}
	clock.advance(time.Second)
	_, err = service.Resolve(t.Context(), source, 0)
	wantFault(t, err, fault.Transient, "ServerFailed", "next try after 03:04:08 UTC")
	server.SetFault(gitserver.Fault{})
	clock.advance(2 * time.Second)
	if got, err := service.Resolve(t.Context(), source, 0); err != nil || got != commit {
		t.Errorf("after mending: %q, %v", got, err)
	}
	_, err = service.Resolve(t.Context(), neighbour, 0)
	wantFault(t, err, fault.Stalled, "RepositoryNotFound")
	if got, err := service.Resolve(t.Context(), source, 0); err != nil || got != commit {
		t.Errorf("a neighbour that does not exist: %q, %v", got, err)
	}
}

func TestRateLimitIsObeyed(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	repo.Commit(map[string]string{"a.txt": "1"})
	clock := newClock()
	service := newService(t, func(o *git.Options) { o.Now = clock.Now })
	server.SetFault(gitserver.Fault{Status: http.StatusTooManyRequests, RetryAfter: "120"})
	_, err := service.Resolve(t.Context(), git.Source{URL: repo.HTTPURL()}, 0)
	wantFault(t, err, fault.Transient, "RateLimited", "next try after 03:06:05 UTC")
	clock.advance(119 * time.Second)
	_, _ = service.Resolve(t.Context(), git.Source{URL: repo.HTTPURL()}, 0)
	if got := server.Counts().InfoRefs; got != 1 {
		t.Errorf("asked %d times", got)
	}
}

func TestBackOffGrowsToFiveMinutes(t *testing.T) {
	server := gitservertest.Start(t)
	server.SetFault(gitserver.Fault{Status: http.StatusInternalServerError})
	clock := newClock()
	service := newService(t, func(o *git.Options) { o.Now = clock.Now })
	source := git.Source{URL: server.HTTPURL() + "/app.git"}
	for range 24 * 60 * 4 {
		_, _ = service.Resolve(t.Context(), source, 0)
		clock.advance(15 * time.Second)
	}
	// A day of polling every 15 s is 5760 polls, and 288 spans of 5 minutes.
	if got := server.Counts().InfoRefs; got < 280 || got > 300 {
		t.Errorf("asked %d times in a day", got)
	}
}

func TestSilentServerTimesOut(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	repo.Commit(map[string]string{"a.txt": "1"})
	server.SetFault(gitserver.Fault{Hang: true})
	for name, source := range map[string]git.Source{"http": {URL: repo.HTTPURL()}, "ssh": sshSource(server, repo)} {
		t.Run(name, func(t *testing.T) {
			service := newService(t, func(o *git.Options) { o.Timeout = 50 * time.Millisecond })
			_, err := service.Resolve(t.Context(), source, 0)
			wantFault(t, err, fault.Transient, "Timeout", "silent for 50ms")
		})
		t.Run(name+" caller gives up", func(t *testing.T) {
			service := newService(t, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if _, err := service.Resolve(ctx, source, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	port, err := process.ReservePort() // where nobody listens, nor will while this runs
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = port.Release() })
	address := fmt.Sprintf("127.0.0.1:%d", port.Number())
	server := gitservertest.Start(t)
	for name, source := range map[string]git.Source{
		"http": {URL: "http://" + address + "/app"},
		"ssh":  {URL: "ssh://git@" + address + "/app", Auth: git.Auth{SSHKey: server.ClientKey()}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newService(t, nil).Resolve(t.Context(), source, 0)
			wantFault(t, err, fault.Transient, "Unreachable", "connection refused", address)
		})
	}
}
