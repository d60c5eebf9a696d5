package wire

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/address"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
)

// gitHub is a git server behind tokens, and the part of GitHub's API that gives them out.
type gitHub struct {
	*httptest.Server
	key *rsa.PrivateKey
	now time.Time
	// status answers requests for tokens when it is set.
	status int
	given  int
	good   string
}

func newGitHub(t *testing.T) *gitHub {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	host := &gitHub{key: key, now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	git := newGitHost(t, httptest.NewServer)
	host.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			host.giveToken(t, w, r)
			return
		}
		if user, password, _ := r.BasicAuth(); user != "x-access-token" || password != host.good {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		git.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(host.Close)
	return host
}

func (h *gitHub) giveToken(t *testing.T, w http.ResponseWriter, r *http.Request) {
	h.given++
	proof, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if err := h.check(proof); err != nil || r.Method != http.MethodPost || r.URL.Path != "/api/app/installations/42/access_tokens" {
		t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
	}
	if h.status != 0 {
		http.Error(w, "hunter2", h.status)
		return
	}
	h.good = fmt.Sprintf("token-%d", h.given)
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": h.good, "expires_at": h.now.Add(time.Hour)})
}

// check verifies a JSON Web Token as GitHub does.
func (h *gitHub) check(proof string) error {
	parts := strings.Split(proof, ".")
	if len(parts) != 3 {
		return fmt.Errorf("%d parts", len(parts))
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(&h.key.PublicKey, crypto.SHA256, digest[:], signature); err != nil {
		return err
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	var claims struct {
		Iss      string
		Iat, Exp int64
	}
	if err := json.Unmarshal(text, &claims); err != nil {
		return err
	}
	if now := h.now.Unix(); claims.Iss != "7" || claims.Iat > now || claims.Exp <= now || claims.Exp > now+600 {
		return fmt.Errorf("claims %+v", claims)
	}
	return nil
}

func (h *gitHub) remote(t *testing.T, url string) (*Remote, error) {
	t.Helper()
	auth, err := credential.FromSecret("Opaque", map[string][]byte{
		"github_app_id": []byte("7\n"), "github_app_installation_id": []byte("42"), "github_app_api_url": []byte(h.URL + "/api/"),
		"github_app_private_key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(h.key)}),
	}, credential.HostKeys{})
	if err != nil {
		t.Fatal(err)
	}
	at, err := address.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := New(Options{Address: at, Auth: auth, InsecureSkipTLSVerify: true, Timeout: time.Minute, Now: func() time.Time { return h.now }})
	if err == nil {
		t.Cleanup(remote.Close)
	}
	return remote, err
}

// A GitHub App gets one token for listing and fetching, a new one before it ends, and when it is refused.
func TestGitHubApp(t *testing.T) {
	host := newGitHub(t)
	remote, err := host.remote(t, host.URL+"/org/repo")
	if err != nil {
		t.Fatal(err)
	}
	use := func() error {
		listing, err := remote.List(t.Context())
		if err != nil {
			return err
		}
		_, err = remote.Fetch(t.Context(), listing, Request{Wants: []string{idA}}, &strings.Builder{})
		return err
	}
	for range 3 {
		if err := use(); err != nil {
			t.Fatal(err)
		}
	}
	if host.given != 1 {
		t.Errorf("%d tokens, want 1", host.given)
	}
	host.now = host.now.Add(55 * time.Minute)
	if err := use(); err != nil || host.given != 2 {
		t.Errorf("near the end of a token: %v, %d tokens", err, host.given)
	}
	host.good = "another"
	if err := use(); fault.ReasonOf(err) != ReasonAuthenticationFailed {
		t.Errorf("a refused token: %v", err)
	}
	if err := use(); err != nil || host.given != 3 {
		t.Errorf("after a refused token: %v, %d tokens", err, host.given)
	}
}

func TestGitHubAppRefused(t *testing.T) {
	host := newGitHub(t)
	for status, want := range map[int]fault.Class{http.StatusUnauthorized: fault.Stalled, http.StatusNotFound: fault.Stalled, http.StatusBadGateway: fault.Transient, http.StatusFound: fault.Stalled, http.StatusOK: fault.Stalled} {
		host.status = status
		remote, err := host.remote(t, host.URL+"/org/repo")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.List(t.Context()); fault.ClassOf(err) != want || strings.Contains(fmt.Sprint(err), "token-") {
			t.Errorf("status %d: got %v (%s), want %s", status, err, fault.ClassOf(err), want)
		}
	}
	for _, url := range []string{"http://git.test/org/repo", "ssh://git@git.test/org/repo"} {
		if _, err := host.remote(t, url); fault.ClassOf(err) != fault.Stalled || !strings.Contains(fmt.Sprint(err), "https") {
			t.Errorf("%s: got %v, want a stalled error that asks for https", url, err)
		}
	}
}
