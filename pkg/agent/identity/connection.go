package identity

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Connection is the way to the hub. Its client certificate can be replaced while it is used.
type Connection struct {
	config *rest.Config
	// template is what transports are made with; the client certificate is added to it.
	template *tls.Config
	current  atomic.Pointer[http.Transport]
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
	roots, err := rootsFrom(config.CAData, credential.TrustSystem)
	if err != nil {
		return nil, err
	}
	if certificate == nil {
		return &Connection{config: trusting(config, roots)}, nil
	}
	c := &Connection{template: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: config.ServerName}}
	c.use(certificate)
	c.config = &rest.Config{Host: config.Host, APIPath: config.APIPath, Transport: c, UserAgent: userAgent, QPS: -1}
	return c, nil
}

// Config returns the config for clients of the hub.
func (c *Connection) Config() *rest.Config { return rest.CopyConfig(c.config) }

// RoundTrip implements http.RoundTripper with the newest certificate.
func (c *Connection) RoundTrip(request *http.Request) (*http.Response, error) {
	return c.current.Load().RoundTrip(request)
}

// CloseIdleConnections closes connections that nothing uses.
func (c *Connection) CloseIdleConnections() {
	if current := c.current.Load(); current != nil {
		current.CloseIdleConnections()
	}
}

// Replace makes new requests use another credential's certificate. What is under way ends as it would
// have: watches, within the minutes for which an API server keeps one open.
func (c *Connection) Replace(credential Credential) error {
	certificate, err := credential.Certificate()
	if err != nil {
		return err
	}
	if certificate == nil || c.template == nil {
		return fmt.Errorf("replace the identity of %s: only certificates can be replaced", c.config.Host)
	}
	if old := c.use(certificate); old != nil {
		old.CloseIdleConnections()
	}
	return nil
}

// use makes a transport with the certificate the current one and returns the one before. A connection
// bears the certificate it was made with, so a new certificate needs new connections.
func (c *Connection) use(certificate *tls.Certificate) *http.Transport {
	settings := c.template.Clone()
	settings.Certificates = []tls.Certificate{*certificate}
	return c.current.Swap(transport(settings))
}
