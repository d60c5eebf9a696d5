package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const (
	userAgent    = "fairlead"
	maxRedirects = 10
)

// client talks to one repository: its credentials are for that one host.
type client struct {
	*Fetcher
	http      *http.Client
	transport *http.Transport
	origin    string
	plainHTTP bool
	// username and password are empty unless they are bound to the origin.
	username, password string
	// identity keeps what was fetched apart from what others fetched.
	identity string
}

// client returns the client for a repository; a user name and password in its URL are used there.
func (s *Source) client(target *url.URL, credentials Credentials) (*client, error) {
	bound, err := credentials.boundTo(target)
	if err != nil {
		return nil, err
	}
	if !bound {
		credentials.Username, credentials.Password = "", ""
	}
	if target.User != nil {
		credentials.Username = target.User.Username()
		credentials.Password, _ = target.User.Password()
		target.User = nil
	}
	origin := target.Scheme + "://" + target.Host
	identity := credentials.identity()
	if known := s.clients[identity+origin]; known != nil {
		return known, nil
	}
	transport, err := s.transport(credentials)
	if err != nil {
		return nil, err
	}
	c := &client{
		Fetcher:   s.Fetcher,
		transport: transport,
		origin:    origin,
		plainHTTP: credentials.BasicHTTP,
		username:  credentials.Username,
		password:  credentials.Password,
		identity:  identity,
	}
	c.http = &http.Client{Transport: guard{transport, credentials.BasicHTTP || target.Scheme == "http"}, CheckRedirect: c.redirect}
	s.clients[identity+origin] = c
	return c, nil
}

func (f *Fetcher) transport(credentials Credentials) (*http.Transport, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: credentials.InsecureSkipTLSVerify}
	if len(credentials.CABundle) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(credentials.CABundle) {
			return nil, fault.New(fault.Stalled, ReasonCredentials, "the CA bundle for charts holds no certificate in PEM")
		}
		settings.RootCAs = pool
	}
	const patience = 30 * time.Second
	return &http.Transport{
		Proxy:                  f.options.Proxy,
		DialContext:            (&net.Dialer{Timeout: patience}).DialContext,
		TLSClientConfig:        settings,
		TLSHandshakeTimeout:    patience,
		ResponseHeaderTimeout:  patience,
		IdleConnTimeout:        patience,
		MaxResponseHeaderBytes: 1 << 20,
		ForceAttemptHTTP2:      true,
	}, nil
}

// guard refuses to send credentials in the clear, whatever asks for it.
type guard struct {
	next       http.RoundTripper
	allowClear bool
}

// RoundTrip implements http.RoundTripper.
func (g guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "http" && !g.allowClear && req.Header.Get("Authorization") != "" {
		return nil, fault.New(fault.Stalled, ReasonAuthentication, "%s asks for credentials without TLS", req.URL.Host)
	}
	return g.next.RoundTrip(req)
}

// redirect drops credentials where the host changes, and does not leave TLS.
func (c *client) redirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fault.New(fault.Stalled, ReasonInvalidRepository, "more than %d redirects", maxRedirects)
	}
	if first := via[0].URL; first.Scheme == "https" && req.URL.Scheme != "https" {
		return fault.New(fault.Stalled, ReasonTLS, "%s redirects to a URL without TLS", first.Host)
	}
	// Compared with the first request, not the last: net/http copies its headers to every further one.
	if first := via[0].URL; req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		req.Header.Del("Authorization")
		req.Header.Del("Cookie")
	}
	return nil
}

// get reads a URL of at most limit bytes, or what is kept of it when the server says it did not change.
// Credentials go along only to the client's own host.
func (c *client) get(ctx context.Context, target *url.URL, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	shown := redact(target.String())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fault.New(fault.Stalled, ReasonInvalidURL, "%s is no valid URL", shown)
	}
	req.Header.Set("User-Agent", userAgent)
	if (c.username != "" || c.password != "") && target.Scheme+"://"+target.Host == c.origin {
		req.SetBasicAuth(c.username, c.password)
	}
	key := c.identity + " GET " + target.String()
	kept := c.cache.find(key)
	kept.condition(req)
	response, err := c.http.Do(req)
	if err != nil {
		return nil, translate(ctx, shown, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusNotModified {
		if data, ok := kept.read(limit); ok {
			return data, nil
		}
		kept.drop()
		return nil, fault.New(fault.Transient, ReasonUnreachable, "get %s: what was kept of it is damaged; it is fetched again", shown)
	}
	if response.StatusCode != http.StatusOK {
		return nil, status(shown, response.StatusCode)
	}
	data, err := readAll(response, limit, shown)
	if err != nil {
		return nil, translate(ctx, shown, err)
	}
	c.cache.keep(key, validatorsOf(response), data)
	return data, nil
}

// readAll takes exactly the memory the server announces; without that, up to twice what arrives.
func readAll(response *http.Response, limit int64, shown string) ([]byte, error) {
	if response.ContentLength > limit {
		return nil, tooLarge(shown, limit)
	}
	if response.ContentLength >= 0 {
		data := make([]byte, response.ContentLength)
		_, err := io.ReadFull(response.Body, data)
		return data, err
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = tooLarge(shown, limit)
	}
	return data, err
}

func tooLarge(shown string, limit int64) error {
	return fault.New(fault.Stalled, ReasonTooLarge, "%s has more than the limit of %d MiB", shown, limit>>20)
}

// status translates an HTTP status that is no success.
func status(shown string, code int) error {
	text := fmt.Sprintf("get %s: the server answered %d %s", shown, code, http.StatusText(code))
	switch {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fault.New(fault.Stalled, ReasonAuthentication, "%s; check the Helm credentials, and that helmRepoURLRegex matches this URL", text)
	case code == http.StatusNotFound || code == http.StatusGone:
		return fault.New(fault.Stalled, ReasonChartNotFound, "%s", text)
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return fault.New(fault.Transient, ReasonUnreachable, "%s", text)
	}
	return fault.New(fault.Stalled, ReasonInvalidRepository, "%s", text)
}

// translate gives an error of the network its class; one that has a class keeps it.
func translate(ctx context.Context, shown string, err error) error {
	var classified *fault.Error
	if errors.As(err, &classified) {
		return fault.New(classified.Class, classified.Reason, "get %s: %w", shown, classified.Err)
	}
	// url.Error repeats the URL, which may hold what must not be shown.
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var timeout net.Error
	switch {
	case errors.As(err, &verification), errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fault.New(fault.Stalled, ReasonTLS, "get %s: %w", shown, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fault.New(fault.Transient, ReasonTimeout, "get %s: no complete answer in time", shown)
	}
	return fault.New(fault.Transient, ReasonUnreachable, "get %s: %w", shown, err)
}
