package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"testing"
)

func TestCertificatesAreGoodForWhatTheyAreFor(t *testing.T) {
	ca := newAuthority(t)
	serverCert, serverKey, err := ca.Server(net.IPv4(10, 96, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	clientCert, clientKey, err := ca.Client("jane", []string{"readers", "writers"})
	if err != nil {
		t.Fatal(err)
	}
	server, client := leaf(t, serverCert, serverKey), leaf(t, clientCert, clientKey)
	if client.Subject.CommonName != "jane" || !slices.Equal(client.Subject.Organization, []string{"readers", "writers"}) {
		t.Errorf("the client is %s", client.Subject)
	}
	forServers, forClients := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	for name, test := range map[string]struct {
		certificate *x509.Certificate
		authority   *Authority
		host        string
		usage       x509.ExtKeyUsage
		want        bool
	}{
		"server on loopback":          {server, ca, "127.0.0.1", forServers, true},
		"server at its service":       {server, ca, "10.96.0.1", forServers, true},
		"server by its name":          {server, ca, "kubernetes.default.svc", forServers, true},
		"server elsewhere":            {server, ca, "192.0.2.1", forServers, false},
		"server as a client":          {server, ca, "", forClients, false},
		"client":                      {client, ca, "", forClients, true},
		"client as a server":          {client, ca, "", forServers, false},
		"client of another authority": {client, newAuthority(t), "", forClients, false},
	} {
		t.Run(name, func(t *testing.T) {
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(test.authority.CertPEM())
			_, err := test.certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: test.host, KeyUsages: []x509.ExtKeyUsage{test.usage}})
			if (err == nil) != test.want {
				t.Errorf("verifies: %v, want %v", err, test.want)
			}
		})
	}
}

func TestAuthorityKeyFitsItsCertificate(t *testing.T) {
	ca := newAuthority(t)
	if certificate := leaf(t, ca.CertPEM(), ca.KeyPEM()); !certificate.IsCA {
		t.Error("it may not sign certificates")
	}
}

func newAuthority(t *testing.T) *Authority {
	t.Helper()
	ca, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// leaf reads a certificate and fails when the key is not its own.
func leaf(t *testing.T, certPEM, keyPEM []byte) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}
