package join

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// Connection is the way to the hub. Its client certificate can be replaced while it is used.
type Connection struct {
	config *rest.Config
	dialer *connrotation.Dialer

	mu          sync.RWMutex
	certificate *tls.Certificate
}

// Connect returns a connection for a credential. With a token instead of a certificate it cannot be
// replaced.
func Connect(credential Credential, userAgent string) (*Connection, error) {
	config, err := credential.Config()
	if err != nil {
		return nil, err
	}
	config.UserAgent = userAgent
	certificate, err := credential.Certificate()
	if err != nil {
		return nil, err
	}
	if certificate == nil {
		return &Connection{config: config}, nil
	}
	c := &Connection{certificate: certificate}
	network := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	c.dialer = connrotation.NewDialer(network.DialContext)
	roots, err := rootsFrom(config.CAData)
	if err != nil {
		return nil, err
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         c.dialer.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS12,
			RootCAs:    roots,
			ServerName: config.ServerName,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return c.current(), nil
			},
		},
	})
	c.config = &rest.Config{Host: config.Host, APIPath: config.APIPath, Transport: transport, UserAgent: userAgent, QPS: -1}
	return c, nil
}

// rootsFrom returns the authorities to trust; nil means those of the system.
func rootsFrom(ca []byte) (*x509.CertPool, error) {
	if len(ca) == 0 {
		return nil, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the hub's certificate authority is no PEM certificate")
	}
	return roots, nil
}

// Config returns the config for clients of the hub.
func (c *Connection) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Replace makes new requests use another credential's certificate. Connections made with the old one
// are closed, so watches start again with the new one.
func (c *Connection) Replace(credential Credential) error {
	certificate, err := credential.Certificate()
	if err != nil {
		return err
	}
	if certificate == nil || c.dialer == nil {
		return fmt.Errorf("replace the identity of %s: only certificates can be replaced", c.config.Host)
	}
	c.mu.Lock()
	c.certificate = certificate
	c.mu.Unlock()
	c.dialer.CloseAll()
	return nil
}

func (c *Connection) current() *tls.Certificate {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.certificate
}
