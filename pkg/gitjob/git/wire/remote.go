package wire

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/address"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/credential"
)

// Options say how to reach a repository.
type Options struct {
	Address address.Address
	Auth    credential.Auth
	// CABundle holds certificates, in PEM, trusted beside the system's.
	CABundle []byte
	// InsecureSkipTLSVerify accepts any HTTPS certificate.
	InsecureSkipTLSVerify bool
	// Timeout bounds how long the server may be silent.
	Timeout time.Duration
	// Now is asked when a server names a date to come back.
	Now func() time.Time
	// ScratchDir is a folder for files that are gone when New returns; empty means the system's.
	ScratchDir string
	// Dial opens connections for SSH; nil means direct, or through the proxy named by the environment.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Remote is one repository seen with one credential. It may be used by several goroutines.
type Remote struct {
	options   Options
	transport transport
}

// transport is one of HTTP and SSH.
type transport interface {
	list(ctx context.Context, dog *watchdog) (*Listing, error)
	fetch(ctx context.Context, dog *watchdog, from *Listing, request Request, pack io.Writer) (Shallow, error)
	close()
}

// Listing is what a server advertises: its branches and tags, and what it is capable of.
type Listing struct {
	// Branches and Tags map short names to commits; annotated tags are already peeled.
	Branches, Tags map[string]string

	// annotated maps commits to the tag objects that point to them.
	annotated    map[string]string
	capabilities map[string]bool
	base         httpBase
}

// Commit is a commit that the caller has, for a server to leave out of what it sends.
type Commit struct {
	ID string
	// Shallow says that the commit's parents are not there.
	Shallow Shallow
}

// Shallow says whether history is cut off.
type Shallow bool

// Request says what to fetch.
type Request struct {
	// Wants are the commits to fetch, at least one.
	Wants []string
	// Haves are commits that are complete here.
	Haves []Commit
	// Full asks for the whole history instead of the wanted commits alone.
	Full bool
}

// New returns a Remote; nothing is connected yet. The error is a Failure: a credential or CA bundle
// that cannot be used.
func New(options Options) (*Remote, error) {
	r := &Remote{options: options}
	var err error
	if options.Address.Scheme == "ssh" {
		r.transport, err = newSSH(options)
	} else {
		r.transport, err = newHTTP(options)
	}
	if err != nil {
		return nil, r.failure(context.Background(), "reach", err)
	}
	return r, nil
}

// List asks the server for its branches and tags.
func (r *Remote) List(ctx context.Context) (*Listing, error) {
	ctx, dog := watch(ctx, r.options.Timeout)
	defer dog.stop()
	listing, err := r.transport.list(ctx, dog)
	if err != nil {
		return nil, r.failure(ctx, "list branches of", err)
	}
	return listing, nil
}

// Fetch writes a pack with what the request wants to pack, and says whether its commits lack their
// parents. The listing must be one of this Remote. When the server does not serve a wanted commit
// because no reference points to it, errors.Is(err, ErrNotServed).
func (r *Remote) Fetch(ctx context.Context, from *Listing, request Request, pack io.Writer) (Shallow, error) {
	ctx, dog := watch(ctx, r.options.Timeout)
	defer dog.stop()
	shallow, err := r.transport.fetch(ctx, dog, from, request, pack)
	if err != nil {
		return false, r.failure(ctx, "fetch from", err)
	}
	return shallow, nil
}

// Close closes idle connections.
func (r *Remote) Close() { r.transport.close() }
