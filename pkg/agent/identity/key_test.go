package identity

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"
	"time"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// certify signs the key by itself.
func certify(t *testing.T, keyPEM []byte, until time.Time) []byte {
	t.Helper()
	key, err := parseKey(keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{NotAfter: until}
	data, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: data})
}

func makeKey(t *testing.T) []byte {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestRequest(t *testing.T) {
	key := makeKey(t)
	data, err := Request(key, fleet.AgentIdentity{User: "one", Groups: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := request.CheckSignature(); err != nil {
		t.Error(err)
	}
	slices.Sort(request.Subject.Organization)
	if request.Subject.CommonName != "one" || !slices.Equal(request.Subject.Organization, []string{"a", "b"}) {
		t.Errorf("asks for %s", request.Subject)
	}
	public, err := PublicKey(key)
	if err != nil || !bytes.Equal(public, request.RawSubjectPublicKeyInfo) {
		t.Errorf("asks for another key: %v", err)
	}
}

func TestFits(t *testing.T) {
	key := makeKey(t)
	certificate := certify(t, key, time.Now().Add(time.Hour))
	if err := Fits(certificate, key); err != nil {
		t.Error(err)
	}
	if err := Fits(certificate, makeKey(t)); fault.ClassOf(err) != fault.Stalled {
		t.Errorf("a certificate for another key: %v", err)
	}
}

func TestExpired(t *testing.T) {
	end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	key := makeKey(t)
	kubeconfig, err := Kubeconfig("https://hub.invalid", nil, certify(t, key, end), key)
	if err != nil {
		t.Fatal(err)
	}
	credential := Credential{Kubeconfig: kubeconfig}
	if credential.Expired(end.Add(-time.Second)) || !credential.Expired(end.Add(time.Second)) {
		t.Error("a certificate does not end when it says")
	}
	if broken := (Credential{Kubeconfig: []byte("{")}); !broken.Expired(end) {
		t.Error("what cannot be read counts as an identity")
	}
}
