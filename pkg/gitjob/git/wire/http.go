package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/address"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
)

const (
	service      = "git-upload-pack"
	userAgent    = "git/2.0 (fairlead)"
	maxRedirects = 5
	maxErrorBody = 2 << 10
)

// httpBase is where a repository turned out to be after redirects.
type httpBase struct {
	url *url.URL
	// trusted says that it is the host the credential is for.
	trusted bool
}

type httpTransport struct {
	address address.Address
	auth    credential.Auth
	// tokens are a GitHub App's; nil where there is none.
	tokens    *appTokens
	transport *http.Transport
	lister    *http.Client
	fetcher   *http.Client
}

func newHTTP(options Options) (*httpTransport, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: options.InsecureSkipTLSVerify}
	if len(options.CABundle) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		if !pool.AppendCertsFromPEM(options.CABundle) {
			return nil, errBundle
		}
		config.RootCAs = pool
	}
	t := &httpTransport{address: options.Address, auth: httpAuth(options)}
	t.transport = &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: options.Timeout,
		IdleConnTimeout:     time.Minute,
		MaxIdleConnsPerHost: 1,
		ForceAttemptHTTP2:   true,
	}
	var err error
	if t.tokens, err = newAppTokens(options, t.transport); err != nil {
		return nil, err
	}
	t.lister = &http.Client{Transport: t.transport, CheckRedirect: checkRedirect}
	t.fetcher = &http.Client{Transport: t.transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return &redirectError{"it redirects a fetch"}
	}}
	return t, nil
}

// httpAuth prefers the Secret over what the address holds.
func httpAuth(options Options) credential.Auth {
	auth := options.Auth
	if auth.App == nil && auth.Username == "" && auth.Password == "" {
		auth.Username, auth.Password = options.Address.Username, options.Address.Password
	}
	return auth
}

// checkRedirect follows a listing to where the repository moved, without the credential when that is
// another host, and never from https to http.
func checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return &redirectError{"it redirects more than 5 times"}
	}
	last := via[len(via)-1].URL
	if last.Scheme == "https" && request.URL.Scheme != "https" {
		return &redirectError{"it redirects from https to " + request.URL.Scheme}
	}
	for _, hop := range append(via[1:], request) {
		if !sameOrigin(via[0].URL, hop.URL) {
			request.Header.Del("Authorization")
			request.URL.User = nil
		}
	}
	return nil
}

// sameOrigin allows http to become https on the host's own ports, which servers commonly ask for.
func sameOrigin(a, b *url.URL) bool {
	isUpgrade := a.Scheme == "http" && b.Scheme == "https" && a.Port() == "" && b.Port() == ""
	return strings.EqualFold(a.Host, b.Host) && (a.Scheme == b.Scheme || isUpgrade)
}

func (t *httpTransport) list(ctx context.Context, dog *watchdog) (*Listing, error) {
	target := at(t.address.URL(), "/info/refs")
	query := "service=" + service
	if target.RawQuery != "" {
		query = target.RawQuery + "&" + query
	}
	target.RawQuery = query
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, err
	}
	if err := t.sign(ctx, dog, request, true); err != nil {
		return nil, err
	}
	response, err := t.do(t.lister, request, "application/x-"+service+"-advertisement")
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	lines := newLineReader(dog.reader(response.Body), maxAdvertisement)
	if err := skipServiceLine(lines); err != nil {
		return nil, err
	}
	listing, err := readAdvertisement(lines)
	if err != nil {
		return nil, err
	}
	listing.base, err = baseOf(response.Request.URL, t.address.URL())
	return listing, err
}

// skipServiceLine reads the greeting that only HTTP has: the service's name and a flush.
func skipServiceLine(lines *lineReader) error {
	line, err := lines.next()
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte("# service="+service)) {
		return protocolError("it greets with %.40q", line)
	}
	if line, err = lines.next(); err == nil && line != nil {
		err = protocolError("it greets with %.40q", line)
	}
	return err
}

func baseOf(final, asked *url.URL) (httpBase, error) {
	path, found := strings.CutSuffix(final.Path, "/info/refs")
	if !found {
		return httpBase{}, &redirectError{"it redirects to a place that is not a repository"}
	}
	base := *final
	base.Path, base.RawPath, base.RawQuery, base.User = path, "", asked.RawQuery, nil
	return httpBase{url: &base, trusted: sameOrigin(asked, final)}, nil
}

func (t *httpTransport) fetch(ctx context.Context, dog *watchdog, from *Listing, request Request, pack io.Writer) (Shallow, error) {
	body, shallow, err := from.encode(request)
	if err != nil {
		return false, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, at(from.base.url, "/"+service).String(), bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	post.Header.Set("Content-Type", "application/x-"+service+"-request")
	post.Header.Set("Accept", "application/x-"+service+"-result")
	if err := t.sign(ctx, dog, post, from.base.trusted); err != nil {
		return false, err
	}
	response, err := t.do(t.fetcher, post, "application/x-"+service+"-result")
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	return shallow, readPack(newLineReader(dog.reader(response.Body), math.MaxInt64), pack)
}

// at returns the URL with something appended to its path.
func at(base *url.URL, suffix string) *url.URL {
	u := *base
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/")+suffix, ""
	return &u
}

func (t *httpTransport) sign(ctx context.Context, dog *watchdog, request *http.Request, trusted bool) error {
	request.Header.Set("User-Agent", userAgent)
	switch {
	case !trusted:
	case t.tokens != nil:
		token, err := t.tokens.get(ctx, dog)
		if err != nil {
			return err
		}
		request.SetBasicAuth(appUser, token)
	case t.auth.Username != "" || t.auth.Password != "":
		request.SetBasicAuth(t.auth.Username, t.auth.Password)
	}
	return nil
}

// do sends a request and returns the answer only when it is one of a git server.
func (t *httpTransport) do(client *http.Client, request *http.Request, wantType string) (*http.Response, error) {
	response, err := client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			// The wrapper repeats the URL; the cause is what matters.
			err = wrapped.Err
		}
		return nil, err
	}
	kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	switch {
	case response.StatusCode != http.StatusOK:
		if t.tokens != nil && response.StatusCode == http.StatusUnauthorized {
			t.tokens.forget()
		}
		err = newStatusError(response)
	case strings.TrimSpace(kind) != wantType:
		err = &notGitError{kind}
	default:
		return response, nil
	}
	_ = response.Body.Close()
	return nil, err
}

func (t *httpTransport) close() { t.transport.CloseIdleConnections() }
