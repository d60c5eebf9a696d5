// Package pki makes the keys and certificates of one throw-away cluster. It refuses to be of use
// beyond that: keys are not protected by anything but file modes, and nothing is ever renewed or
// revoked. Start reading at Authority.
package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime of every certificate: longer than any test or demo, and no longer.
const lifetime = 30 * 24 * time.Hour

// Authority is the one certificate authority of a cluster: it signs the API server's certificate,
// client certificates, and, in the controller manager's hands, certificate signing requests.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	certPEM     []byte
	keyPEM      []byte
}

// NewAuthority returns an authority with a new key and a certificate signed by itself.
func NewAuthority(cluster string) (*Authority, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: cluster + "-ca"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	certPEM, keyPEM, err := certify(template, nil)
	if err != nil {
		return nil, fmt.Errorf("create authority of %s: %w", cluster, err)
	}
	block, _ := pem.Decode(certPEM)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("create authority of %s: %w", cluster, err)
	}
	keyBlock, _ := pem.Decode(keyPEM)
	key, err := x509.ParseECPrivateKey(keyBlock.Bytes)
	if err != nil {
		return nil, fmt.Errorf("create authority of %s: %w", cluster, err)
	}
	return &Authority{certificate: certificate, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// CertPEM returns the authority's certificate.
func (a *Authority) CertPEM() []byte { return bytes.Clone(a.certPEM) }

// KeyPEM returns the authority's private key.
func (a *Authority) KeyPEM() []byte { return bytes.Clone(a.keyPEM) }

// Server returns a certificate for an API server on loopback, which pods know as
// kubernetes.default at a service address.
func (a *Authority) Server(service net.IP) (certPEM, keyPEM []byte, err error) {
	return certify(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), service},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
	}, a)
}

// Client returns a certificate that makes its holder this user in these groups.
func (a *Authority) Client(user string, groups []string) (certPEM, keyPEM []byte, err error) {
	return certify(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature,
	}, a)
}

// certify completes a template with a new key, serial and validity and has the issuer sign it, or,
// without an issuer, the new key itself.
func certify(template *x509.Certificate, issuer *Authority) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template.NotBefore, template.NotAfter = now.Add(-time.Hour), now.Add(lifetime)
	parent, signer := template, crypto.Signer(key)
	if issuer != nil {
		parent, signer = issuer.certificate, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	if keyPEM, err = encodeKey(key); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), keyPEM, nil
}

// NewKey returns a new private key, such as service account tokens are signed with.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return encodeKey(key)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
