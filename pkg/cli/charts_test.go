package cli

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Charts of a Helm repository are fetched by the commands, and credentials go only where the flags say.
func TestChartsFromARepository(t *testing.T) {
	archive := packed(t, map[string]string{
		"web/Chart.yaml":        "apiVersion: v2\nname: web\nversion: 1.2.3\n",
		"web/templates/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-chart}\n",
	})
	authorized := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); ok && user == "me" && password == "secret" {
			authorized++
		}
		switch r.URL.Path {
		case "/index.yaml":
			_, _ = w.Write([]byte("apiVersion: v1\nentries: {web: [{name: web, version: 1.2.3, urls: [web-1.2.3.tgz]}]}\n"))
		case "/web-1.2.3.tgz":
			_, _ = w.Write(archive)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	repository(t, map[string]string{"web/fleet.yaml": "helm: {repo: " + server.URL + ", chart: web, version: ^1.0.0}\n", "password": "secret\n"})
	login := []string{"--helm-insecure-skip-tls", "--username", "me", "--password-file", "password"}
	out := mustRun(t, append([]string{"render", "-p", "web", "--clusters", "../clusters.yaml", "--cluster", "dev"}, login...)...)
	if !strings.Contains(out, "name: from-chart\n") {
		t.Errorf("objects lack those of the chart:\n%s", out)
	}
	if authorized > 0 {
		t.Error("credentials were sent though no expression says where")
	}
	mustRun(t, append([]string{"apply", "shop", "web", "-o", "-", "--helm-repo-url-regex", server.URL}, login...)...)
	if authorized == 0 {
		t.Error("no credentials were sent to the repository they are for")
	}
}

func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	zipped := gzip.NewWriter(&buffer)
	archive := tar.NewWriter(zipped)
	for name, text := range files {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}
