package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// NewKey returns a new private key, PEM.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	data, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: data}), nil
}

// PublicKey returns the public half of a key that NewKey made, DER.
func PublicKey(keyPEM []byte) ([]byte, error) {
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encode the key: %w", err)
	}
	return public, nil
}

// Request returns a certificate request, PEM, that binds the key to what the hub said the agent is.
func Request(keyPEM []byte, bearer fleet.AgentIdentity) ([]byte, error) {
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: bearer.User, Organization: bearer.Groups}}
	data, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: data}), nil
}

// Fits returns an error of class fault.Stalled when a certificate is for another key.
func Fits(certificate, key []byte) error {
	kubeconfig, err := Kubeconfig("https://hub.invalid", nil, certificate, key)
	if err != nil {
		return err
	}
	if _, err := (Credential{Kubeconfig: kubeconfig}).Certificate(); err != nil {
		return fault.New(fault.Stalled, "InvalidCertificate", "the hub's certificate is for another key")
	}
	return nil
}

func parseKey(keyPEM []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("the stored key is no PEM")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the stored key cannot be read")
	}
	return key, nil
}
