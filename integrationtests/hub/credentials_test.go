package hub

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Each folder's chart is fetched with the credentials of its path, and with no others.
func TestCredentialsByPath(t *testing.T) {
	h := getHub(t)
	server := httptest.NewServer(http.HandlerFunc(serveChart))
	t.Cleanup(server.Close)
	namespace := h.workspace("dev")
	files := map[string]string{}
	for _, name := range []string{"one", "two", "other"} {
		files["apps/"+name+"/fleet.yaml"] = fmt.Sprintf("helm: {repo: %s/%s, chart: web}\n", server.URL, name)
	}
	repo, _ := h.repo(files)
	object := gitRepo(namespace, "paths", repo.HTTPURL(), func(s *fleet.GitRepoSpec) { s.HelmSecretNameForPaths, s.Paths = "charts", []string{"apps"} })
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "charts"},
		Data:       map[string][]byte{"secrets-path.yaml": []byte("apps/one: {username: one, password: secret-one}\napps/t*: {username: two, password: secret-two}\n")},
	}
	h.create(secret, object)
	wait(h, object, "names the folder without credentials", func(r *fleet.GitRepo) error {
		return errors.Join(readySays("apps/other")(r), silent(r, "apps/one", "apps/two", "secret-"))
	})
	secret.Data["secrets-path.yaml"] = append(secret.Data["secrets-path.yaml"], "apps/o*: {username: other, password: secret-other}\n"...)
	if err := h.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two", "other"} {
		h.waitDeployments("paths-apps-"+name, namespace, "dev")
	}
}

// silent returns an error for words in the Ready condition that do not belong there.
func silent(repo *fleet.GitRepo, words ...string) error {
	ready := status.Find(repo.Status.Conditions, fleet.ConditionReady)
	for _, word := range words {
		if ready != nil && strings.Contains(ready.Message, word) {
			return fmt.Errorf("Ready speaks of %s: %s", word, ready.Message)
		}
	}
	return nil
}

// serveChart serves a Helm repository in each folder to the user of the folder's name.
func serveChart(w http.ResponseWriter, r *http.Request) {
	folder, file := path.Split(strings.TrimPrefix(r.URL.Path, "/"))
	name := strings.Trim(folder, "/")
	if user, password, ok := r.BasicAuth(); !ok || user != name || password != "secret-"+name {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if file == "index.yaml" {
		_, _ = w.Write([]byte("apiVersion: v1\nentries: {web: [{name: web, version: 1.0.0, urls: [web-1.0.0.tgz]}]}\n"))
		return
	}
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for name, text := range map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "web/templates/a.yaml": fmt.Sprintf(configMap, "x")} {
		_ = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))})
		_, _ = archive.Write([]byte(text))
	}
	_, _ = archive.Close(), zipped.Close()
}
