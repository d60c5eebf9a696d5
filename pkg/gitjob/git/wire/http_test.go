package wire

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/address"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
)

// gitHost answers as a git server does, and notes who showed a credential.
type gitHost struct {
	*httptest.Server
	mu   sync.Mutex
	auth []string
}

func newGitHost(t *testing.T, start func(http.Handler) *httptest.Server) *gitHost {
	t.Helper()
	host := &gitHost{}
	host.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host.mu.Lock()
		host.auth = append(host.auth, r.Header.Get("Authorization"))
		host.mu.Unlock()
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = w.Write(lines("# service=git-upload-pack\n", "", idA+" refs/heads/main\x00side-band-64k", ""))
			return
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_, _ = w.Write(lines("NAK\n", "\x01PACK", ""))
	}))
	t.Cleanup(host.Close)
	return host
}

func (h *gitHost) sawCredential() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.auth, "") != ""
}

func newRemote(t *testing.T, url string) *Remote {
	t.Helper()
	at, err := address.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := New(Options{
		Address: at, Auth: credential.Auth{Username: "user", Password: "hunter2"}, InsecureSkipTLSVerify: true,
		Timeout: time.Minute, Now: func() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remote.Close)
	return remote
}

func redirector(t *testing.T, start func(http.Handler) *httptest.Server, to func(*http.Request) string) string {
	t.Helper()
	server := start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to(r), http.StatusMovedPermanently)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestRedirectToAnotherHostLosesTheCredential(t *testing.T) {
	host := newGitHost(t, httptest.NewServer)
	url := redirector(t, httptest.NewServer, func(*http.Request) string { return host.URL + "/moved/info/refs?service=git-upload-pack" })
	remote := newRemote(t, url+"/app")
	listing, err := remote.List(t.Context())
	if err != nil || listing.Branches["main"] != idA {
		t.Fatalf("listing %+v, %v", listing, err)
	}
	var pack bytes.Buffer
	if _, err := remote.Fetch(t.Context(), listing, Request{Wants: []string{idA}}, &pack); err != nil || pack.String() != "PACK" {
		t.Errorf("pack %q, %v", pack.String(), err)
	}
	if host.sawCredential() {
		t.Error("the other host saw the credential")
	}
}

func TestRedirectOnTheSameHostKeepsTheCredential(t *testing.T) {
	host := newGitHost(t, httptest.NewServer)
	inner := host.Config.Handler
	host.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/old/") {
			http.Redirect(w, r, "/new/info/refs?service=git-upload-pack", http.StatusMovedPermanently)
			return
		}
		inner.ServeHTTP(w, r)
	})
	remote := newRemote(t, host.URL+"/old/app")
	listing, err := remote.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := remote.Fetch(t.Context(), listing, Request{Wants: []string{idA}}, &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
	host.mu.Lock()
	defer host.mu.Unlock()
	if len(host.auth) != 2 || host.auth[0] == "" || host.auth[1] == "" {
		t.Errorf("credentials %q", host.auth)
	}
}

func TestRedirectsThatAreRefused(t *testing.T) {
	plain := newGitHost(t, httptest.NewServer)
	for name, url := range map[string]string{
		"from https to http": redirector(t, httptest.NewTLSServer, func(r *http.Request) string { return plain.URL + r.URL.String() }),
		"in a circle":        redirector(t, httptest.NewServer, func(r *http.Request) string { return r.URL.String() }),
		"to a page":          redirector(t, httptest.NewServer, func(*http.Request) string { return plain.URL + "/login" }),
		"to a local file":    redirector(t, httptest.NewServer, func(*http.Request) string { return "file:///etc/passwd" }),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newRemote(t, url+"/app").List(t.Context())
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v", err)
			}
		})
	}
	if plain.sawCredential() {
		t.Error("a credential went over plain HTTP to another host")
	}
}

func TestNetworkErrorsReadTheSameEachTime(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		// No lingering makes the peer see a reset instead of an orderly end.
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
	}))
	defer server.Close()
	remote := newRemote(t, server.URL+"/app")
	texts := map[string]bool{}
	for range 5 {
		_, err := remote.List(t.Context())
		if fault.ReasonOf(err) != ReasonUnreachable {
			t.Fatalf("error %v", err)
		}
		texts[err.Error()] = true
	}
	if len(texts) != 1 {
		t.Errorf("texts %v", texts)
	}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"lookup":  {&net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "git.example.com", Server: "10.0.0.1:53"}}, "lookup git.example.com: no such host"},
		"proxied": {&net.OpError{Op: "proxyconnect", Err: &net.OpError{Op: "dial", Addr: &net.TCPAddr{Port: 9}, Err: errors.New("refused")}}, "proxyconnect: dial: refused"},
		"other":   {errors.New("other"), "other"},
	} {
		if got := cause(test.err); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestExpiredCertificateIsNamedWithoutTheTimeOfDay(t *testing.T) {
	remote := newRemote(t, "https://example.com/app")
	expired := &x509.Certificate{NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)}
	err := remote.failure(t.Context(), "reach", &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{
		Cert: expired, Reason: x509.Expired, Detail: "current time 2030-01-01T00:00:00Z is after 2021-01-01T00:00:00Z"}})
	if fault.ReasonOf(err) != ReasonTLSFailed || !strings.Contains(err.Error(), "from 2020-01-01 to 2021-01-01") || strings.Contains(err.Error(), "2030") {
		t.Errorf("error %v", err)
	}
}

func TestStatusBecomesAReason(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		header map[string]string
		body   string
		class  fault.Class
		reason string
		scope  Scope
		after  time.Duration
	}{
		"wrong password":    {401, nil, "denied for hunter2", fault.Stalled, ReasonAuthenticationFailed, ScopeRepository, 0},
		"forbidden":         {403, nil, "", fault.Stalled, ReasonAuthenticationFailed, ScopeRepository, 0},
		"GitHub's limit":    {403, map[string]string{"X-RateLimit-Remaining": "0"}, "", fault.Transient, ReasonRateLimited, ScopeHost, 0},
		"limit in seconds":  {429, map[string]string{"Retry-After": "90"}, "", fault.Transient, ReasonRateLimited, ScopeHost, 90 * time.Second},
		"limit with a date": {429, map[string]string{"Retry-After": "Tue, 01 Jan 2030 00:02:00 GMT"}, "", fault.Transient, ReasonRateLimited, ScopeHost, 2 * time.Minute},
		"limit for a year":  {429, map[string]string{"Retry-After": "31536000"}, "", fault.Transient, ReasonRateLimited, ScopeHost, time.Hour},
		"maintenance":       {503, map[string]string{"Retry-After": "10"}, "", fault.Transient, ReasonServerFailed, ScopeHost, 10 * time.Second},
		"not there":         {404, nil, "", fault.Stalled, ReasonRepositoryNotFound, ScopeRepository, 0},
		"a page":            {200, map[string]string{"Content-Type": "text/html"}, "<html>", fault.Stalled, ReasonRepositoryNotFound, ScopeRepository, 0},
		"garbage": {200, map[string]string{"Content-Type": "application/x-git-upload-pack-advertisement"}, "garbage",
			fault.Transient, ReasonProtocolFailed, ScopeRepository, 0},
		"broken repository": {500, nil, "", fault.Transient, ReasonServerFailed, ScopeRepository, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/plain")
				for key, value := range test.header {
					w.Header().Set(key, value)
				}
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			}))
			defer server.Close()
			_, err := newRemote(t, server.URL+"/app").List(t.Context())
			var failure *Failure
			if !errors.As(err, &failure) {
				t.Fatalf("error %T %v", err, err)
			}
			if fault.ClassOf(err) != test.class || fault.ReasonOf(err) != test.reason || failure.Scope != test.scope || failure.RetryAfter != test.after {
				t.Errorf("%s %s %s %s: %v", fault.ClassOf(err), fault.ReasonOf(err), failure.Scope, failure.RetryAfter, err)
			}
			if strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), server.URL+"/app") {
				t.Errorf("message %v", err)
			}
		})
	}
}
