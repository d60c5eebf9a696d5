package kube

import (
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
	"os"
	"path/filepath"
	"time"
)

// lifetime of every certificate: longer than any test or demo, and no longer.
const lifetime = 30 * 24 * time.Hour

// authority is the one certificate authority of a cluster: it signs the API server's certificate,
// client certificates, and, in the controller manager's hands, certificate signing requests.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	certPEM     []byte
	keyPEM      []byte
}

func newAuthority(cluster string) (*authority, error) {
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
	return &authority{certificate: certificate, key: key, certPEM: certPEM, keyPEM: keyPEM}, nil
}

// server returns a certificate for an API server on loopback that pods know as kubernetes.default.
func (a *authority) server() (certPEM, keyPEM []byte, err error) {
	return certify(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(firstServiceIP)},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
	}, a)
}

// client returns a certificate that makes its holder this user in these groups.
func (a *authority) client(user string, groups []string) (certPEM, keyPEM []byte, err error) {
	return certify(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature,
	}, a)
}

// certify completes a template with a new key, serial and validity and has the issuer sign it, or,
// without an issuer, the new key itself.
func certify(template *x509.Certificate, issuer *authority) (certPEM, keyPEM []byte, err error) {
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

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// writePKI puts what the processes read as files into dir.
func writePKI(dir string, ca *authority) error {
	serverCert, serverKey, err := ca.server()
	if err != nil {
		return fmt.Errorf("issue the API server's certificate: %w", err)
	}
	tokenKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("create the service account key: %w", err)
	}
	tokenPEM, err := encodeKey(tokenKey)
	if err != nil {
		return fmt.Errorf("create the service account key: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write keys: %w", err)
	}
	for name, data := range map[string][]byte{
		caCertFile: ca.certPEM, caKeyFile: ca.keyPEM,
		serverCertFile: serverCert, serverKeyFile: serverKey,
		tokenKeyFile: tokenPEM,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("write keys: %w", err)
		}
	}
	return nil
}
