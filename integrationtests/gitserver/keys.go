package gitserver

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
)

// authority signed the server's certificate.
type authority struct {
	bundle      []byte
	certificate tls.Certificate
}

func (a *authority) serverConfig() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
}

func (s *Server) makeKeys() error {
	var err error
	if s.authority, err = newAuthority(time.Now()); err != nil {
		return fmt.Errorf("make certificate of git server: %w", err)
	}
	if s.hostSigner, _, err = newSSHKey(); err != nil {
		return err
	}
	s.clientSigner, s.clientKey, err = newSSHKey()
	return err
}

func newSSHKey() (ssh.Signer, []byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make SSH key: %w", err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("make SSH signer: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return nil, nil, fmt.Errorf("encode SSH key: %w", err)
	}
	return signer, pem.EncodeToMemory(block), nil
}

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gitserver authority"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	root, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	parent, err := x509.ParseCertificate(root)
	if err != nil {
		return nil, err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "gitserver"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}, parent, &serverKey.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &authority{
		bundle:      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root}),
		certificate: tls.Certificate{Certificate: [][]byte{leaf}, PrivateKey: serverKey},
	}, nil
}
