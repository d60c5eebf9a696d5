package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/repo"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
)

// counter is a handler that counts requests by "METHOD path status" and checks credentials if it has any.
type counter struct {
	next               http.Handler
	username, password string

	mutex sync.Mutex
	seen  map[string]int
	// authorized counts requests that carried credentials.
	authorized int
}

type recorder struct {
	http.ResponseWriter
	code int
}

func (r *recorder) WriteHeader(code int) {
	r.code = code
	r.ResponseWriter.WriteHeader(code)
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &recorder{w, http.StatusOK}
	username, password, given := r.BasicAuth()
	if c.username != "" && (username != c.username || password != c.password) {
		out.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
		out.WriteHeader(http.StatusUnauthorized)
	} else {
		c.next.ServeHTTP(out, r)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.seen == nil {
		c.seen = map[string]int{}
	}
	c.seen[fmt.Sprintf("%s %s %d", r.Method, r.URL.Path, out.code)]++
	if given {
		c.authorized++
	}
}

func (c *counter) count(what string) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	n := 0
	for key, times := range c.seen {
		if strings.Contains(key, what) {
			n += times
		}
	}
	return n
}

func serve(t testing.TB, handler http.Handler) (*counter, *httptest.Server) {
	t.Helper()
	c := &counter{next: handler}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	return c, server
}

// helmPackage packs a chart with Helm and returns the archive's path.
func helmPackage(t testing.TB, dir, name, version string) string {
	t.Helper()
	made := &chart.Chart{
		Metadata:  &chart.Metadata{APIVersion: "v2", Name: name, Version: version},
		Templates: []*chart.File{{Name: "templates/a.yaml", Data: []byte("version: " + version + "\n")}},
	}
	file, err := chartutil.Save(made, dir)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// helmRepository returns a folder with packed charts and the index that Helm makes of it.
func helmRepository(t testing.TB, url string, charts ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, one := range charts {
		name, version, _ := strings.Cut(one, "@")
		helmPackage(t, dir, name, version)
	}
	index, err := repo.IndexDirectory(dir, url)
	if err != nil {
		t.Fatal(err)
	}
	index.SortEntries()
	if err := index.WriteFile(filepath.Join(dir, "index.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ociRegistry is a registry without TLS that holds charts, pushed as Helm pushes them.
func ociRegistry(t testing.TB, charts ...string) (*counter, string) {
	t.Helper()
	c, server := serve(t, registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	host := strings.TrimPrefix(server.URL, "http://")
	for _, one := range charts {
		name, version, _ := strings.Cut(one, "@")
		data, err := os.ReadFile(helmPackage(t, t.TempDir(), name, version))
		if err != nil {
			t.Fatal(err)
		}
		push(t, host+"/charts/"+name, strings.ReplaceAll(version, "+", "_"), chartLayer, data)
	}
	return c, host
}

func push(t testing.TB, reference, tag, mediaType string, data []byte) {
	t.Helper()
	ctx := context.Background()
	store := memory.New()
	layer := content.NewDescriptorFromBytes(mediaType, data)
	if err := store.Push(ctx, layer, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	options := oras.PackManifestOptions{Layers: []ocispec.Descriptor{layer}}
	manifest, err := oras.PackManifest(ctx, store, oras.PackManifestVersion1_1, "application/vnd.cncf.helm.config.v1+json", options)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Tag(ctx, manifest, tag); err != nil {
		t.Fatal(err)
	}
	target, err := remote.NewRepository(reference)
	if err != nil {
		t.Fatal(err)
	}
	target.PlainHTTP = true
	if _, err := oras.Copy(ctx, store, tag, target, tag, oras.DefaultCopyOptions); err != nil {
		t.Fatal(err)
	}
}
