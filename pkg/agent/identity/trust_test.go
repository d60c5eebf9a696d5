package identity

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/rest"
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
		system bool
		wantOK bool
	}{
		"ours alone":                  {own, false, true},
		"with the system's":           {own, true, true},
		"only the system's, not ours": {nil, true, false},
		"nothing given":               {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := WithToken(server.URL, test.ca, "secret", test.system, "test")
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
			if roots, err := rootsFrom(test.ca, test.system); err != nil || len(test.ca) > 0 && roots.Equal(strict) == (test.system && hasSystems) {
				t.Errorf("the system's authorities are missing, or trusted without being asked for: %v", err)
			}
		})
	}
	if _, err := rootsFrom([]byte("no certificate"), false); err == nil {
		t.Error("an authority that is none is trusted")
	}
}
