package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// WithToken returns the config of a client that shows a token, as long as it has no certificate. With trustSystem the
// system's authorities are trusted beside the one that is given.
func WithToken(url string, ca []byte, token string, trustSystem bool, userAgent string) (*rest.Config, error) {
	roots, err := rootsFrom(ca, trustSystem)
	if err != nil {
		return nil, err
	}
	return trusting(&rest.Config{Host: url, BearerToken: token, UserAgent: userAgent, QPS: -1}, roots), nil
}

// rootsFrom returns the authorities to trust: the given one, with the system's if that is wanted. Nil means those
// of the system; they are trusted alone where none is given.
func rootsFrom(ca []byte, system bool) (*x509.CertPool, error) {
	if len(ca) == 0 {
		return nil, nil
	}
	roots := x509.NewCertPool()
	if system {
		found, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("read the system's certificate authorities: %w", err)
		}
		roots = found
	}
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the hub's certificate authority is no PEM certificate")
	}
	return roots, nil
}

// trusting gives a config without a client certificate a transport that trusts the roots.
func trusting(config *rest.Config, roots *x509.CertPool) *rest.Config {
	config = rest.CopyConfig(config)
	config.Transport = transport(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: config.ServerName})
	config.TLSClientConfig = rest.TLSClientConfig{}
	return config
}

func transport(settings *tls.Config) *http.Transport {
	network := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         network.DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
		TLSClientConfig:     settings,
	})
}
