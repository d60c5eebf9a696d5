package fetch

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/bundle/archive"
	"github.com/fairlead-dev/fairlead/pkg/bundle/charts"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// fetch asks a new source once.
func fetch(t *testing.T, options Options, credentials Credentials, ref charts.Ref) (*charts.Chart, error) {
	t.Helper()
	source := New(options).Source(func(string) Credentials { return credentials })
	defer source.Close()
	return source.Fetch(t.Context(), ref)
}

func TestFetchVersions(t *testing.T) {
	_, server := serve(t, http.FileServer(http.Dir(helmRepository(t, "", "web@1.0.0", "web@1.2.0", "web@1.10.0", "web@2.0.0-rc.1", "web@1.3.0+build.5", "beta@0.1.0-alpha", "other@9.0.0"))))
	_, host := ociRegistry(t, "web@1.0.0", "web@1.2.0", "web@1.10.0", "web@2.0.0-rc.1", "web@1.3.0+build.5", "beta@0.1.0-alpha")
	for name, test := range map[string]struct {
		chart, version  string
		want            string
		wantReason      string
		wantInMessage   string
		onlyRepository  bool
		reasonInStorage string
	}{
		"newest release":          {chart: "web", want: "1.10.0"},
		"exact":                   {chart: "web", version: "1.2.0", want: "1.2.0"},
		"exact with a v":          {chart: "web", version: "v1.2.0", want: "1.2.0", onlyRepository: true},
		"caret":                   {chart: "web", version: "^1.1", want: "1.10.0"},
		"range":                   {chart: "web", version: ">=1.0.0 <1.3.0", want: "1.2.0"},
		"pre-release":             {chart: "web", version: ">=2.0.0-0", want: "2.0.0-rc.1"},
		"build":                   {chart: "web", version: "1.3.0+build.5", want: "1.3.0+build.5"},
		"nothing fits":            {chart: "web", version: "^3", wantReason: ReasonVersionNotFound, wantInMessage: "1.10.0"},
		"only pre-releases":       {chart: "beta", wantReason: ReasonVersionNotFound, wantInMessage: "0.1.0-alpha"},
		"no constraint":           {chart: "web", version: "latest!", wantReason: ReasonVersionNotFound},
		"no such chart":           {chart: "nope", wantReason: ReasonChartNotFound, wantInMessage: "nope"},
		"exact that is not there": {chart: "web", version: "7.7.7", wantReason: ReasonVersionNotFound, reasonInStorage: ReasonChartNotFound},
	} {
		for kind, repo := range map[string]string{"repository": server.URL, "registry": "oci://" + host + "/charts"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				if test.onlyRepository && kind == "registry" {
					t.Skip("a tag is what it is")
				}
				wantReason := test.wantReason
				if kind == "registry" && test.reasonInStorage != "" {
					wantReason = test.reasonInStorage
				}
				got, err := fetch(t, Options{}, Credentials{BasicHTTP: true}, charts.Ref{Repo: repo, Chart: test.chart, Version: test.version})
				if wantReason != "" {
					if fault.ReasonOf(err) != wantReason || !fault.NeedsPerson(err) || !strings.Contains(err.Error(), test.wantInMessage) {
						t.Errorf("got %v, want a stalled %s that says %q", err, wantReason, test.wantInMessage)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				checkChart(t, got, test.chart, test.want)
			})
		}
	}
}

func checkChart(t *testing.T, got *charts.Chart, name, version string) {
	t.Helper()
	if got.Name != name || got.Version != version {
		t.Errorf("got %s %s, want %s %s", got.Name, got.Version, name, version)
	}
	files, err := archive.Unpack(got.Archive, archive.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if file.Name == name+"/templates/a.yaml" && string(file.Data) == "version: "+version+"\n" {
			return
		}
	}
	t.Errorf("the archive is not the one of %s %s", name, version)
}

// The forms in which a chart may be named.
func TestFetchForms(t *testing.T) {
	_, server := serve(t, http.FileServer(http.Dir(helmRepository(t, "", "web@1.0.0"))))
	_, host := ociRegistry(t, "web@1.0.0")
	file, err := http.Get(server.URL + "/web-1.0.0.tgz")
	if err != nil {
		t.Fatal(err)
	}
	file.Body.Close()
	packed, err := fetch(t, Options{}, Credentials{}, charts.Ref{Repo: server.URL, Chart: "web"})
	if err != nil {
		t.Fatal(err)
	}
	sum := digestOf(packed.Archive)
	for name, test := range map[string]struct {
		ref        charts.Ref
		wantReason string
	}{
		"repository with a slash":    {charts.Ref{Repo: server.URL + "/", Chart: "web"}, ""},
		"archive":                    {charts.Ref{Chart: server.URL + "/web-1.0.0.tgz"}, ""},
		"archive with checksum":      {charts.Ref{Chart: server.URL + "/web-1.0.0.tgz?checksum=sha256:" + sum}, ""},
		"archive with bare checksum": {charts.Ref{Chart: server.URL + "/web-1.0.0.tgz?checksum=" + sum}, ""},
		"wrong checksum":             {charts.Ref{Chart: server.URL + "/web-1.0.0.tgz?checksum=" + strings.Repeat("0", 64)}, ReasonDigest},
		"other checksum":             {charts.Ref{Chart: server.URL + "/web-1.0.0.tgz?checksum=md5:00"}, ReasonNotSupported},
		"folder in an archive":       {charts.Ref{Chart: server.URL + "/web-1.0.0.tgz//web"}, ReasonNotSupported},
		"no such archive":            {charts.Ref{Chart: server.URL + "/nope.tgz"}, ReasonChartNotFound},
		"registry in repo":           {charts.Ref{Repo: "oci://" + host + "/charts/web"}, ""},
		"registry in chart":          {charts.Ref{Chart: "oci://" + host + "/charts/web", Version: "1.0.0"}, ""},
		"registry with a tag":        {charts.Ref{Chart: "oci://" + host + "/charts/web:1.0.0"}, ""},
		"no chart":                   {charts.Ref{Repo: server.URL}, ReasonChartNotFound},
		"git":                        {charts.Ref{Chart: "git::https://u:secret@host.test/x//y?ref=main"}, ReasonNotSupported},
		"git with a key":             {charts.Ref{Chart: "git::ssh://git@host.test/x?sshkey=secret"}, ReasonNotSupported},
		"git on the machine":         {charts.Ref{Chart: "git::file:///etc"}, ReasonInvalidURL},
		"git by a program":           {charts.Ref{Chart: "ext::sh -c x"}, ReasonInvalidURL},
		"git by its name":            {charts.Ref{Chart: "https://u:secret@host.test/x.git"}, ReasonNotSupported},
		"ssh":                        {charts.Ref{Chart: "ssh://git@host.test/x"}, ReasonNotSupported},
		"file":                       {charts.Ref{Repo: "file:///etc", Chart: "passwd"}, ReasonInvalidURL},
		"no host":                    {charts.Ref{Repo: "https:///x", Chart: "web"}, ReasonInvalidURL},
		"no URL":                     {charts.Ref{Repo: "ht tp://x", Chart: "web"}, ReasonInvalidURL},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fetch(t, Options{}, Credentials{BasicHTTP: true}, test.ref)
			if test.wantReason != "" {
				if fault.ReasonOf(err) != test.wantReason || !fault.NeedsPerson(err) || strings.Contains(err.Error(), "secret") {
					t.Errorf("got %v, want a stalled %s without secrets", err, test.wantReason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if digestOf(got.Archive) != sum && !strings.Contains(name, "registry") {
				t.Error("another archive came back")
			}
		})
	}
}

// Looking again costs a question and no download, and one owner's charts are not another's.
func TestFetchKeeps(t *testing.T) {
	served, server := serve(t, http.FileServer(http.Dir(helmRepository(t, "", "web@1.0.0", "web@1.1.0"))))
	registered, host := ociRegistry(t, "web@1.0.0")
	options := Options{Dir: t.TempDir()}
	get := func(credentials Credentials) {
		t.Helper()
		source := New(options).Source(func(string) Credentials { return credentials })
		defer source.Close()
		for range 3 {
			for _, ref := range []charts.Ref{{Repo: server.URL, Chart: "web"}, {Repo: server.URL, Chart: "web", Version: "1.0.0"}, {Repo: "oci://" + host + "/charts/web", Version: "1.0.0"}} {
				if _, err := source.Fetch(t.Context(), ref); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	plain := Credentials{BasicHTTP: true}
	get(plain)
	blobs := registered.count("GET /v2/charts/web/blobs")
	for range 4 {
		get(plain)
	}
	for what, want := range map[string]int{"/index.yaml 200": 1, "/index.yaml 304": 4, ".tgz": 2} {
		if got := served.count(what); got != want {
			t.Errorf("%d requests like %q, want %d", got, what, want)
		}
	}
	if got := registered.count("GET /v2/charts/web/blobs"); got != blobs || blobs != 1 {
		t.Errorf("%d downloads from the registry, then %d, want 1", blobs, got)
	}
	get(Credentials{BasicHTTP: true, Username: "u", Password: "p", AnyURL: true})
	if got := served.count(".tgz 200"); got != 4 {
		t.Errorf("%d downloads, want 4: other credentials get nothing for free", got)
	}
}

func TestFetchDamagedFiles(t *testing.T) {
	_, server := serve(t, http.FileServer(http.Dir(helmRepository(t, "", "web@1.0.0"))))
	options, ref := Options{Dir: t.TempDir()}, charts.Ref{Repo: server.URL, Chart: "web"}
	if _, err := fetch(t, options, Credentials{}, ref); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(options.Dir, "*"))
	if err != nil || len(kept) == 0 {
		t.Fatalf("nothing is kept: %v", err)
	}
	for _, file := range kept {
		if !strings.HasSuffix(file, ".json") {
			if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := fetch(t, options, Credentials{}, ref); fault.ClassOf(err) != fault.Transient {
		t.Errorf("got %v, want a transient error", err)
	}
	// Index and archive are found out one after the other.
	var last error
	for range 2 {
		_, last = fetch(t, options, Credentials{}, ref)
	}
	if last != nil {
		t.Errorf("the damage does not mend itself: %v", last)
	}
}

func TestCacheIsBounded(t *testing.T) {
	clock := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &cache{dir: t.TempDir(), limit: 10_000, now: func() time.Time { clock = clock.Add(time.Minute); return clock }}
	for i := range 10 {
		c.keep(fmt.Sprint(i), validators{}, make([]byte, 3000))
		// The first one is used all the time.
		if _, ok := c.find("0").read(3000); !ok {
			t.Fatalf("the file in use is gone after %d", i)
		}
	}
	if _, ok := c.find("1").read(3000); ok {
		t.Error("an old file is still there")
	}
	if _, ok := c.find("9").read(3000); !ok {
		t.Error("the newest file is gone")
	}
	c.keep("huge", validators{}, make([]byte, 6000))
	if _, ok := c.find("huge").read(6000); ok {
		t.Error("a file of more than half of the limit is kept")
	}
}

func TestFetchCredentials(t *testing.T) {
	served, server := serve(t, http.FileServer(http.Dir(helmRepository(t, "", "web@1.0.0"))))
	served.username, served.password = "user", "s3cret"
	host := strings.TrimPrefix(server.URL, "http://")
	good := Credentials{Username: "user", Password: "s3cret"}
	with := func(regex string) Credentials { c := good; c.URLRegex = regex; return c }
	for name, test := range map[string]struct {
		credentials Credentials
		repo        string
		wantReason  string
	}{
		"bound to the host":           {with("http://" + host), server.URL, ""},
		"bound to the host and more":  {with("http://" + host + "/"), server.URL + "/", ""},
		"bound by alternatives":       {with("https://x.test|http://" + host), server.URL, ""},
		"bound by the path of a tree": {Credentials{Username: "user", Password: "s3cret", AnyURL: true}, server.URL, ""},
		"in the URL":                  {Credentials{}, "http://user:s3cret@" + host, ""},
		"bound to nothing":            {good, server.URL, ReasonAuthentication},
		"bound to another host":       {with("http://other.test"), server.URL, ReasonAuthentication},
		"bound to the host's start":   {with("http://" + host[:len(host)-2]), server.URL, ReasonAuthentication},
		"bound to the scheme":         {with("http://"), server.URL, ReasonAuthentication},
		"wrong password":              {Credentials{Username: "user", Password: "s3cret-wrong", AnyURL: true}, server.URL, ReasonAuthentication},
		"no expression":               {with("("), server.URL, ReasonCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fetch(t, Options{}, test.credentials, charts.Ref{Repo: test.repo, Chart: "web"})
			if test.wantReason == "" && err != nil {
				t.Error(err)
			}
			if test.wantReason != "" && (fault.ReasonOf(err) != test.wantReason || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("got %v, want %s without secrets", err, test.wantReason)
			}
		})
	}
}

// Neither a redirect nor an index with URLs elsewhere takes credentials to another host.
func TestFetchKeepsCredentialsHome(t *testing.T) {
	dir := helmRepository(t, "", "web@1.0.0")
	elsewhere, other := serve(t, http.FileServer(http.Dir(dir)))
	redirecting, first := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusFound)
	}))
	pointing, second := serve(t, http.FileServer(http.Dir(helmRepository(t, other.URL, "web@1.0.0"))))
	credentials := Credentials{Username: "user", Password: "s3cret", AnyURL: true}
	for name, repo := range map[string]string{"redirect": first.URL, "index": second.URL} {
		if _, err := fetch(t, Options{}, credentials, charts.Ref{Repo: repo, Chart: "web"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if elsewhere.authorized != 0 || redirecting.authorized == 0 || pointing.authorized == 0 {
		t.Errorf("credentials arrived %d times elsewhere, %d and %d times at home", elsewhere.authorized, redirecting.authorized, pointing.authorized)
	}
}

func TestBoundTo(t *testing.T) {
	for name, test := range map[string]struct {
		regex, url string
		want       bool
	}{
		"host":                    {`https://charts\.test`, "https://charts.test/a", true},
		"longer host":             {`https://charts\.test`, "https://charts.test.evil.test/a", false},
		"user that looks like it": {`https://charts\.test`, "https://charts.test@evil.test/a", false},
		"port":                    {`https://charts\.test`, "https://charts.test:8443/", false},
		"port given":              {`https://charts\.test:8443`, "https://charts.test:8443/", true},
		"inside a path":           {`https://charts\.test`, "https://evil.test/https://charts.test", false},
		"path":                    {`https://charts\.test/team/`, "https://charts.test/other/", false},
		"registry":                {`oci://r\.test/team/.*`, "oci://r.test/team/web", true},
		"anchored already":        {`^https://charts\.test/`, "https://charts.test/a", true},
		"shorter alternative":     {`https://charts|https://charts\.test`, "https://charts.test/", true},
	} {
		target, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Credentials{Username: "u", Password: "p", URLRegex: test.regex}.boundTo(target)
		if err != nil || got != test.want {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, test.want)
		}
	}
}

func TestFetchTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.FileServer(http.Dir(helmRepository(t, "", "web@1.0.0"))))
	server.Config.ErrorLog = nil
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	_, plain := serve(t, http.NotFoundHandler())
	downgrade := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(downgrade.Close)
	downgradeCA := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: downgrade.Certificate().Raw})
	for name, test := range map[string]struct {
		credentials Credentials
		repo        string
		wantReason  string
	}{
		"CA bundle":      {Credentials{CABundle: ca}, server.URL, ""},
		"not verified":   {Credentials{InsecureSkipTLSVerify: true}, server.URL, ""},
		"unknown CA":     {Credentials{}, server.URL, ReasonTLS},
		"no certificate": {Credentials{CABundle: []byte("x")}, server.URL, ReasonCredentials},
		"no TLS there":   {Credentials{}, "https://" + strings.TrimPrefix(plain.URL, "http://"), ReasonTLS},
		"out of TLS":     {Credentials{CABundle: downgradeCA}, downgrade.URL, ReasonTLS},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fetch(t, Options{}, test.credentials, charts.Ref{Repo: test.repo, Chart: "web"})
			if got := fault.ReasonOf(err); err == nil != (test.wantReason == "") || err != nil && got != test.wantReason {
				t.Errorf("got %v (%s), want %q", err, got, test.wantReason)
			}
		})
	}
}

func TestFetchRegistryCredentials(t *testing.T) {
	registered, host := ociRegistry(t, "web@1.0.0")
	registered.username, registered.password = "user", "s3cret"
	ref := charts.Ref{Repo: "oci://" + host + "/charts/web", Version: "1.0.0"}
	good := Credentials{Username: "user", Password: "s3cret", URLRegex: "oci://" + host, BasicHTTP: true}
	if _, err := fetch(t, Options{}, good, ref); err != nil {
		t.Error(err)
	}
	for name, credentials := range map[string]Credentials{
		"none":       {BasicHTTP: true},
		"wrong":      {Username: "user", Password: "wrong-s3cret", AnyURL: true, BasicHTTP: true},
		"not bound":  {Username: "user", Password: "s3cret", BasicHTTP: true},
		"other host": {Username: "user", Password: "s3cret", URLRegex: "oci://other.test", BasicHTTP: true},
	} {
		_, err := fetch(t, Options{}, credentials, ref)
		if fault.ReasonOf(err) != ReasonAuthentication || !fault.NeedsPerson(err) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want %s without secrets", name, err, ReasonAuthentication)
		}
	}
	if _, err := fetch(t, Options{}, Credentials{}, ref); fault.ReasonOf(err) != ReasonTLS {
		t.Errorf("a registry without TLS: got %v, want %s", err, ReasonTLS)
	}
}

func TestFetchBadServers(t *testing.T) {
	hanging := make(chan struct{})
	t.Cleanup(func() { close(hanging) })
	mux := http.NewServeMux()
	serveIndex := func(pattern, index string) {
		mux.HandleFunc(pattern+"/index.yaml", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, index) })
	}
	serveIndex("/digest", "entries:\n  web:\n  - name: web\n    version: 1.0.0\n    urls: [x.tgz]\n    digest: "+strings.Repeat("0", 64)+"\n")
	mux.HandleFunc("/digest/x.tgz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") })
	serveIndex("/html", "<html>: [\n")
	serveIndex("/nourl", "entries:\n  web:\n  - version: 1.0.0\n")
	serveIndex("/wrong", "entries:\n  web: 3\n")
	serveIndex("/registry", "entries:\n  web:\n  - {version: 1.0.0, urls: ['oci://r.test/web']}\n")
	serveIndex("/local", "entries:\n  web:\n  - {version: 1.0.0, urls: ['file:///etc/passwd']}\n")
	serveIndex("/large", strings.Repeat("#", 2000))
	mux.HandleFunc("/endless/index.yaml", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1000)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/busy/index.yaml", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	mux.HandleFunc("/slow/index.yaml", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hanging:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/circle/", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) })
	_, server := serve(t, mux)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, test := range map[string]struct {
		repo       string
		wantReason string
		wantClass  fault.Class
	}{
		"wrong digest":        {server.URL + "/digest", ReasonDigest, fault.Stalled},
		"no index":            {server.URL + "/html", ReasonInvalidRepository, fault.Stalled},
		"version without URL": {server.URL + "/nourl", ReasonInvalidRepository, fault.Stalled},
		"wrong type":          {server.URL + "/wrong", ReasonInvalidRepository, fault.Stalled},
		"URL in a registry":   {server.URL + "/registry", ReasonNotSupported, fault.Stalled},
		"URL on the machine":  {server.URL + "/local", ReasonInvalidURL, fault.Stalled},
		"large index":         {server.URL + "/large", ReasonTooLarge, fault.Stalled},
		"endless index":       {server.URL + "/endless", ReasonTooLarge, fault.Stalled},
		"busy":                {server.URL + "/busy", ReasonUnreachable, fault.Transient},
		"hanging":             {server.URL + "/slow", ReasonTimeout, fault.Transient},
		"redirect in circles": {server.URL + "/circle", ReasonInvalidRepository, fault.Stalled},
		"nobody there":        {closed.URL, ReasonUnreachable, fault.Transient},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{MaxIndex: 1000}
			if name == "hanging" {
				options.Timeout = 50 * time.Millisecond
			}
			_, err := fetch(t, options, Credentials{}, charts.Ref{Repo: test.repo, Chart: "web"})
			if fault.ReasonOf(err) != test.wantReason || fault.ClassOf(err) != test.wantClass {
				t.Errorf("got %v (%s %s), want %s %s", err, fault.ClassOf(err), fault.ReasonOf(err), test.wantClass, test.wantReason)
			}
		})
	}
}

// Every read of the network ends: servers that stall before the answer or in the midst of it.
func TestFetchFromStallingServers(t *testing.T) {
	files := http.FileServer(http.Dir(helmRepository(t, "", "web@1.0.0")))
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	for name, test := range map[string]struct {
		next http.Handler
		// stall is the part of the path of what is not answered.
		stall string
		ref   func(url string) charts.Ref
	}{
		"index":             {files, "/index.yaml", func(url string) charts.Ref { return charts.Ref{Repo: url, Chart: "web"} }},
		"chart of an index": {files, ".tgz", func(url string) charts.Ref { return charts.Ref{Repo: url, Chart: "web"} }},
		"archive":           {files, ".tgz", func(url string) charts.Ref { return charts.Ref{Chart: url + "/web-1.0.0.tgz"} }},
		"tags":              {images, "/tags/", func(url string) charts.Ref { return charts.Ref{Repo: asRegistry(url)} }},
		"manifest":          {images, "/manifests/", func(url string) charts.Ref { return charts.Ref{Repo: asRegistry(url), Version: "1.0.0"} }},
		"blob":              {images, "/blobs/", func(url string) charts.Ref { return charts.Ref{Repo: asRegistry(url), Version: "1.0.0"} }},
	} {
		for _, midst := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in the midst %v", name, midst), func(t *testing.T) {
				ended := make(chan struct{})
				var stalls atomic.Bool
				_, server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !stalls.Load() || !strings.Contains(r.URL.Path, test.stall) {
						test.next.ServeHTTP(w, r)
						return
					}
					if midst {
						w.Header().Set("Content-Length", "100")
						_, _ = io.WriteString(w, "the first of many bytes")
						_ = http.NewResponseController(w).Flush()
					}
					select {
					case <-r.Context().Done():
					case <-ended:
					}
				}))
				defer close(ended)
				if strings.HasPrefix(test.ref(server.URL).Repo, "oci:") {
					data, err := os.ReadFile(helmPackage(t, t.TempDir(), "web", "1.0.0"))
					if err != nil {
						t.Fatal(err)
					}
					push(t, strings.TrimPrefix(server.URL, "http://")+"/charts/web", "1.0.0", chartLayer, data)
				}
				stalls.Store(true)
				_, err := fetch(t, Options{Timeout: 100 * time.Millisecond}, Credentials{BasicHTTP: true}, test.ref(server.URL))
				if fault.ReasonOf(err) != ReasonTimeout || fault.ClassOf(err) != fault.Transient {
					t.Errorf("got %v (%s %s), want a transient %s", err, fault.ClassOf(err), fault.ReasonOf(err), ReasonTimeout)
				}
			})
		}
	}
}

func asRegistry(url string) string { return "oci" + strings.TrimPrefix(url, "http") + "/charts/web" }

// A failure because the caller stopped is not remembered.
func TestFetchStops(t *testing.T) {
	_, server := serve(t, http.FileServer(http.Dir(helmRepository(t, "", "web@1.0.0"))))
	source := New(Options{}).Source(nil)
	defer source.Close()
	ref := charts.Ref{Repo: server.URL, Chart: "web"}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := source.Fetch(ctx, ref); err == nil {
		t.Error("a stopped fetch gave a chart")
	}
	if _, err := source.Fetch(t.Context(), ref); err != nil {
		t.Error(err)
	}
}

func TestCredentialsFromSecret(t *testing.T) {
	got, err := CredentialsFromSecret(map[string][]byte{"username": []byte("u\n"), "password": []byte("p\n"), "cacerts": []byte("ca"), "insecureSkipVerify": []byte("true"), "basicHTTP": []byte("false")})
	want := Credentials{Username: "u", Password: "p", CABundle: []byte("ca"), InsecureSkipTLSVerify: true}
	if err != nil || got.identity() != want.identity() {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := CredentialsFromSecret(map[string][]byte{"basicHTTP": []byte("perhaps")}); !fault.NeedsPerson(err) {
		t.Errorf("got %v, want a stalled error", err)
	}
}

func TestCredentialsByPath(t *testing.T) {
	find, err := CredentialsByPath([]byte("apps/*: {username: glob}\napps/web: {username: exact, basicHTTP: true}\napps/?eb: {username: late}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{"apps/web": "exact", "apps/api": "glob", "apps/web/deep": "", "other": ""} {
		if got := find(folder).Username; got != want {
			t.Errorf("%s: user %q, want %q", folder, got, want)
		}
	}
	for _, document := range []string{"s3cret", "a[: {}", "x: [s3cret]"} {
		if _, err := CredentialsByPath([]byte(document)); !fault.NeedsPerson(err) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got %v, want a stalled error without its content", document, err)
		}
	}
}

// Read and Fetch together: a chart from a repository with a dependency from a registry.
func TestReadWithCharts(t *testing.T) {
	_, server := serve(t, http.FileServer(http.Dir(helmRepository(t, "", "web@1.2.3"))))
	_, host := ociRegistry(t, "dep@2.1.0", "dep@2.0.0")
	tree := fstest.MapFS{
		"app/fleet.yaml": {Data: []byte("helm: {repo: '" + server.URL + "', chart: web, version: ~1.2}")},
		"own/Chart.yaml": {Data: []byte("apiVersion: v2\nname: own\nversion: 0.1.0\ndependencies: [{name: dep, version: ^2, repository: 'oci://" + host + "/charts'}]")},
	}
	source := New(Options{}).Source(func(string) Credentials { return Credentials{BasicHTTP: true} })
	defer source.Close()
	result, err := bundle.Read(t.Context(), tree, bundle.Request{Name: "r", Paths: []string{"app", "own"}}, source)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range result.Bundles {
		for _, resource := range b.Object.Spec.Resources {
			names = append(names, b.Object.Name+" "+resource.Name)
		}
	}
	all := strings.Join(names, "\n")
	for _, want := range []string{"/web/templates/a.yaml", "r-own charts/dep-2.1.0.tgz", "r-own Chart.yaml"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
}
