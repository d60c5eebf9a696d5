package registry

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	containerregistry "github.com/google/go-containerregistry/pkg/registry"
	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const (
	user     = "writer"
	password = "secret-of-writer"
)

// host is a registry that wants a user name and a password, and counts what is written.
type host struct {
	*httptest.Server
	mutex  sync.Mutex
	writes int
}

func serve(t *testing.T, start func(*httptest.Server)) *host {
	t.Helper()
	h := &host{}
	inner := containerregistry.New(containerregistry.Logger(log.New(io.Discard, "", 0)))
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, word, _ := r.BasicAuth(); name != user || word != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"`+password+`"}]}`, http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPut || r.Method == http.MethodPost || r.Method == http.MethodPatch {
			h.mutex.Lock()
			h.writes++
			h.mutex.Unlock()
		}
		inner.ServeHTTP(w, r)
	}))
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(h.Server)
	t.Cleanup(h.Close)
	return h
}

func (h *host) access() Access {
	_, address, _ := strings.Cut(h.URL, "://")
	return Access{Reference: address + "/fleet", Username: user, Password: password, BasicHTTP: strings.HasPrefix(h.URL, "http://")}
}

func manifest(t *testing.T, text string) (content.Manifest, content.Stored) {
	t.Helper()
	made := content.Manifest{Resources: []fleet.BundleResource{{Name: "a.yaml", Content: text}}}
	stored, err := made.Store()
	if err != nil {
		t.Fatal(err)
	}
	return made, stored
}

func TestPushPullDelete(t *testing.T) {
	for name, test := range map[string]struct {
		start  func(*httptest.Server)
		access func(*host, *Access)
	}{
		"without TLS":          {(*httptest.Server).Start, func(*host, *Access) {}},
		"TLS not checked":      {(*httptest.Server).StartTLS, func(_ *host, a *Access) { a.InsecureSkipTLS = true }},
		"TLS of an own issuer": {(*httptest.Server).StartTLS, func(h *host, a *Access) { a.CACerts = pemOf(h) }},
	} {
		t.Run(name, func(t *testing.T) {
			h := serve(t, test.start)
			access := h.access()
			test.access(h, &access)
			made, stored := manifest(t, "a: <1>\n")
			var client Client
			if _, err := client.Pull(t.Context(), access, stored.ID); fault.ReasonOf(err) != ReasonNotFound {
				t.Errorf("before it is there: %v", err)
			}
			if err := client.Push(t.Context(), access, stored); err != nil {
				t.Fatal(err)
			}
			got, err := client.Pull(t.Context(), access, stored.ID)
			if err != nil || !reflect.DeepEqual(got, made) {
				t.Fatalf("pulled %+v, %v", got, err)
			}
			before := h.writes
			if err := client.Push(t.Context(), access, stored); err != nil || h.writes != before {
				t.Errorf("a second push writes %d times, %v", h.writes-before, err)
			}
			for range 2 {
				if err := client.Delete(t.Context(), access, stored.ID); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := client.Pull(t.Context(), access, stored.ID); fault.ReasonOf(err) != ReasonNotFound {
				t.Errorf("after it was deleted: %v", err)
			}
			if err := client.Push(t.Context(), access, stored); err != nil {
				t.Errorf("pushing it once more: %v", err)
			}
		})
	}
}

func pemOf(h *host) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
}

// The artifact is laid out as upstream's agents read it.
func TestLayoutIsUpstreams(t *testing.T) {
	h := serve(t, (*httptest.Server).Start)
	_, stored := manifest(t, "a: 1\n")
	if err := (Client{}).Push(t.Context(), h.access(), stored); err != nil {
		t.Fatal(err)
	}
	var found struct {
		MediaType, ArtifactType string
		Layers                  []struct {
			MediaType, Digest string
			Annotations       map[string]string
		}
	}
	if err := json.Unmarshal(h.get(t, "/v2/fleet/"+stored.ID+"/manifests/latest"), &found); err != nil {
		t.Fatal(err)
	}
	if found.MediaType != "application/vnd.oci.image.manifest.v1+json" || found.ArtifactType != "application/fleet.manifest" || len(found.Layers) != 1 {
		t.Fatalf("the artifact is %+v", found)
	}
	layer := found.Layers[0]
	if layer.MediaType != "application/fleet.file" || !reflect.DeepEqual(layer.Annotations, map[string]string{"id": stored.ID}) {
		t.Errorf("the layer is %+v", layer)
	}
	if data := h.get(t, "/v2/fleet/"+stored.ID+"/blobs/"+layer.Digest); !bytes.Equal(data, textOf(t, stored)) {
		t.Errorf("the layer holds %s", data)
	}
}

func (h *host) get(t *testing.T, path string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(user, password)
	request.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("get %s: %s, %v, %s", path, response.Status, err, data)
	}
	return data
}

// Errors are transient, name the registry and hold no credential.
func TestErrors(t *testing.T) {
	_, stored := manifest(t, "a: 1\n")
	_, other := manifest(t, "a: 2\n")
	plain, secured, gone := serve(t, (*httptest.Server).Start), serve(t, (*httptest.Server).StartTLS), serve(t, (*httptest.Server).Start)
	away := gone.access()
	gone.Close()
	change := func(h *host, change func(*Access)) Access {
		access := h.access()
		change(&access)
		return access
	}
	// Somebody has put something else where the contents belong.
	swapped := other
	swapped.ID = stored.ID
	swapping := change(plain, func(a *Access) { a.Reference += "/swapped" })
	if err := (Client{}).Push(t.Context(), swapping, swapped); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		access Access
		reason string
		want   string
	}{
		"a wrong password":   {change(plain, func(a *Access) { a.Password = "wrong-password" }), ReasonAuthentication, "check user name and password"},
		"no password":        {change(plain, func(a *Access) { a.Username, a.Password = "", "" }), ReasonAuthentication, "wants a user name"},
		"away":               {away, ReasonUnreachable, "refused"},
		"an unknown issuer":  {secured.access(), ReasonUnreachable, "certificate"},
		"TLS where is none":  {change(plain, func(a *Access) { a.BasicHTTP = false }), ReasonUnreachable, "HTTP"},
		"another's contents": {swapping, ReasonInvalid, "something else"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Client{}.Pull(t.Context(), test.access, stored.ID)
			if fault.ClassOf(err) != fault.Transient || fault.ReasonOf(err) != test.reason {
				t.Fatalf("class %s, reason %s: %v", fault.ClassOf(err), fault.ReasonOf(err), err)
			}
			for _, want := range []string{test.want, test.access.Reference, "pull contents"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v lacks %q", err, want)
				}
			}
			for _, secret := range []string{password, "wrong-password"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error holds a password: %v", err)
				}
			}
		})
	}
	if err := (Client{}).Push(t.Context(), away, stored); fault.ClassOf(err) != fault.Transient {
		t.Errorf("push to a registry that is away: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (Client{}).Push(ctx, plain.access(), stored); err == nil {
		t.Error("a cancelled push succeeds")
	}
}

// Credentials do not leave TLS by a redirect.
func TestRedirectOutOfTLS(t *testing.T) {
	plain := serve(t, (*httptest.Server).Start)
	secured := httptest.NewUnstartedServer(http.RedirectHandler(plain.URL+"/v2/x", http.StatusTemporaryRedirect))
	secured.Config.ErrorLog = log.New(io.Discard, "", 0)
	secured.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	secured.StartTLS()
	defer secured.Close()
	access := Access{Reference: strings.TrimPrefix(secured.URL, "https://"), Username: user, Password: password, InsecureSkipTLS: true}
	if _, err := (Client{}).Pull(t.Context(), access, "s-a"); err == nil || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("error %v", err)
	}
}

func TestAccessOf(t *testing.T) {
	whole := Access{
		Reference: "registry.test:5000/a/b", Username: "u", Password: "p", AgentUsername: "au", AgentPassword: "ap",
		BasicHTTP: true, InsecureSkipTLS: true, CACerts: []byte("ca"),
	}
	for name, test := range map[string]struct {
		kind    corev1.SecretType
		data    map[string][]byte
		want    Access
		wantErr string
	}{
		"all":            {fleet.OCIStorageSecretType, whole.Data(), whole, ""},
		"reference only": {fleet.OCIStorageSecretType, map[string][]byte{"reference": []byte("registry.test/a")}, Access{Reference: "registry.test/a"}, ""},
		"with a scheme":  {fleet.OCIStorageSecretType, map[string][]byte{"reference": []byte("oci://registry.test/a/\n")}, Access{Reference: "registry.test/a"}, ""},
		"the older key":  {fleet.OCIStorageSecretType, map[string][]byte{"reference": []byte("r.test/a"), "insecure": []byte("true")}, Access{Reference: "r.test/a", InsecureSkipTLS: true}, ""},
		"wrong type":     {corev1.SecretTypeOpaque, whole.Data(), Access{}, "is of type"},
		"no reference":   {fleet.OCIStorageSecretType, map[string][]byte{"username": []byte("u")}, Access{}, "reference"},
		"bad reference":  {fleet.OCIStorageSecretType, map[string][]byte{"reference": []byte("a b")}, Access{}, "reference"},
		"no boolean":     {fleet.OCIStorageSecretType, map[string][]byte{"reference": []byte("r.test/a"), "basicHTTP": []byte("sure")}, Access{}, "basicHTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Type: test.kind, Data: test.data}
			got, err := AccessOf(secret)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) || fault.ClassOf(err) != fault.Stalled {
					t.Errorf("error %v, want %q", err, test.wantErr)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if got := whole.ForAgents(); got.Username != "au" || got.Password != "ap" {
		t.Errorf("agents get %s", got.Username)
	}
	if got := (Access{Username: "u", Password: "p"}).ForAgents(); got.Username != "u" || got.Password != "p" {
		t.Errorf("agents without credentials of their own get %s", got.Username)
	}
}

func textOf(t *testing.T, stored content.Stored) []byte {
	t.Helper()
	text, err := stored.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
