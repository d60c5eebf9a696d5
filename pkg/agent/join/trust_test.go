package join

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// The hub's own authority is trusted in either mode; the system's authorities only where that is set, and where no
// other is given.
func TestTrust(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	strict, err := rootsFrom(own, false)
	if err != nil {
		t.Fatal(err)
	}
	systems, err := x509.SystemCertPool()
	hasSystems := err == nil && !systems.Equal(x509.NewCertPool())
	for name, test := range map[string]struct {
		ca     []byte
		mode   string
		wantOK bool
	}{
		"strict":                      {own, "strict", true},
		"not set":                     {own, "", true},
		"with the system's":           {own, "system-store", true},
		"only the system's, not ours": {nil, "system-store", false},
		"nothing given":               {nil, "strict", false},
	} {
		t.Run(name, func(t *testing.T) {
			system, err := Settings{AgentTLSMode: test.mode}.trustsSystem()
			if err != nil {
				t.Fatal(err)
			}
			boot := &bootstrap{url: server.URL, token: "secret", ca: test.ca, trustSystem: system}
			config, err := boot.config("test")
			if err != nil {
				t.Fatal(err)
			}
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := client.Get(server.URL)
			if err == nil {
				answer.Body.Close()
			}
			if ok := err == nil && answer.StatusCode == http.StatusOK; ok != test.wantOK {
				t.Errorf("reached: %v, %v", ok, err)
			}
			if roots, err := rootsFrom(test.ca, system); err != nil || len(test.ca) > 0 && roots.Equal(strict) == (system && hasSystems) {
				t.Errorf("the system's authorities are missing, or trusted without being asked for: %v", err)
			}
		})
	}
	if _, err := (Settings{AgentTLSMode: "none"}).trustsSystem(); fault.ClassOf(err) != fault.Stalled || !strings.Contains(err.Error(), "none") {
		t.Errorf("unknown mode: %v", err)
	}
	if _, err := rootsFrom([]byte("no certificate"), false); err == nil {
		t.Error("an authority that is none is trusted")
	}
}
