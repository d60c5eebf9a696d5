package fetch

import (
	"context"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/bundle/archive"
	"github.com/fairlead-dev/fairlead/pkg/bundle/charts"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fetch/index"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Reasons of errors of this package, fit for a condition.
const (
	ReasonAuthentication    = "AuthenticationFailed"
	ReasonChartNotFound     = "ChartNotFound"
	ReasonVersionNotFound   = index.ReasonVersionNotFound
	ReasonInvalidRepository = "InvalidRepository"
	ReasonInvalidURL        = "InvalidURL"
	ReasonNotSupported      = "NotSupported"
	ReasonTLS               = "TLSFailed"
	ReasonTooLarge          = "TooLarge"
	ReasonTimeout           = "Timeout"
	ReasonUnreachable       = "Unreachable"
	ReasonDigest            = "DigestMismatch"
	ReasonCredentials       = "InvalidCredentials"
)

// Options of a Fetcher; the zero value keeps nothing and has usable limits.
type Options struct {
	// Dir keeps what was fetched; empty keeps nothing. It may be shared by processes of one user.
	Dir string
	// MaxKept bounds Dir, in bytes; 0 means 512 MiB.
	MaxKept int64
	// Timeout of one download; 0 means 5 minutes.
	Timeout time.Duration
	// MaxIndex bounds the index of a Helm repository, in bytes; 0 means 32 MiB.
	MaxIndex int64
	// MaxArchive bounds a chart's archive, in bytes; 0 means what package archive unpacks.
	MaxArchive int64
	// Proxy returns the proxy for a request; nil means none.
	Proxy func(*http.Request) (*url.URL, error)
	// Git opens a commit of a git repository; nil means that charts from git cannot be had. What it
	// returns is closed when it is an io.Closer.
	Git func(context.Context, GitRef) (fs.FS, error)
	// Now is the clock that orders what is kept; nil means time.Now.
	Now func() time.Time
}

// Fetcher fetches charts. It is safe for concurrent use.
type Fetcher struct {
	options Options
	cache   *cache
}

// New returns a Fetcher.
func New(options Options) *Fetcher {
	setDefault(&options.MaxKept, 512<<20)
	setDefault(&options.MaxIndex, 32<<20)
	setDefault(&options.MaxArchive, archive.DefaultLimits.Packed)
	if options.Timeout == 0 {
		options.Timeout = 5 * time.Minute
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	return &Fetcher{options: options, cache: &cache{dir: options.Dir, limit: options.MaxKept, now: options.Now}}
}

func setDefault(value *int64, fallback int64) {
	if *value == 0 {
		*value = fallback
	}
}

// Source fetches with the credentials of one owner, and asks each repository only once: make one for
// every read of a tree. It is not safe for concurrent use. Close it.
type Source struct {
	*Fetcher
	credentials func(path string) Credentials
	clients     map[string]*client
	charts      map[string]result
	indexes     map[string]fetched
}

type result struct {
	chart *charts.Chart
	err   error
}

var _ charts.Source = (*Source)(nil)

// Source returns a source; credentials gives those for a bundle's folder, and may be nil.
func (f *Fetcher) Source(credentials func(path string) Credentials) *Source {
	if credentials == nil {
		credentials = func(string) Credentials { return Credentials{} }
	}
	return &Source{
		Fetcher:     f,
		credentials: credentials,
		clients:     map[string]*client{},
		charts:      map[string]result{},
		indexes:     map[string]fetched{},
	}
}

// Close lets go of idle connections.
func (s *Source) Close() {
	for _, c := range s.clients {
		c.transport.CloseIdleConnections()
	}
}

// Fetch returns the newest chart that fits the reference. Errors have the class that says who can help
// and name the repository without credentials.
func (s *Source) Fetch(ctx context.Context, ref charts.Ref) (*charts.Chart, error) {
	credentials := s.credentials(ref.Path)
	key := strings.Join([]string{credentials.identity(), ref.Repo, ref.Chart, ref.Version}, "\x00")
	if known, ok := s.charts[key]; ok {
		return known.chart, known.err
	}
	chart, err := s.fetch(ctx, ref, credentials)
	if ctx.Err() == nil {
		s.charts[key] = result{chart, err}
	}
	return chart, err
}

func (s *Source) fetch(ctx context.Context, ref charts.Ref, credentials Credentials) (*charts.Chart, error) {
	address := ref.Repo
	if address == "" {
		address = ref.Chart
	}
	if isGit(address) {
		return s.fromGit(ctx, address, credentials)
	}
	target, err := parse(address)
	if err != nil {
		return nil, err
	}
	c, err := s.client(target, credentials)
	if err != nil {
		return nil, err
	}
	switch {
	case target.Scheme == "oci":
		return s.fromRegistry(ctx, c, target, ref)
	case ref.Repo == "":
		return s.fromWeb(ctx, c, target)
	}
	return s.fromRepository(ctx, c, target, ref)
}

// parse checks that an address is a URL of a kind that can be fetched.
func parse(address string) (*url.URL, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, fault.New(fault.Stalled, ReasonInvalidURL, "%s is no valid URL", redact(address))
	}
	switch target.Scheme {
	case "http", "https", "oci":
	default:
		return nil, fault.New(fault.Stalled, ReasonInvalidURL, "%s: charts are fetched from https://, http:// and oci:// URLs", redact(address))
	}
	if target.Host == "" || target.Opaque != "" {
		return nil, fault.New(fault.Stalled, ReasonInvalidURL, "%s names no host", redact(address))
	}
	target.Scheme, target.Host = strings.ToLower(target.Scheme), strings.ToLower(target.Host)
	return target, nil
}

// redact returns an address without credentials and query.
func redact(address string) string {
	address, _, _ = strings.Cut(address, "?")
	scheme, rest, hasScheme := strings.Cut(address, "://")
	if !hasScheme {
		return address
	}
	host, path, _ := strings.Cut(rest, "/")
	if at := strings.LastIndex(host, "@"); at >= 0 {
		host = host[at+1:]
	}
	if path != "" {
		host += "/" + path
	}
	return scheme + "://" + host
}
