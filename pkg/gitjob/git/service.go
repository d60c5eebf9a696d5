package git

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/address"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/store"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/wire"
)

// Options configure a Service; only Dir is needed.
type Options struct {
	// Dir is a folder for mirrors. The service owns the folder git-mirrors in it, for one process.
	Dir string
	// Timeout bounds how long a server may be silent; 30 seconds if zero.
	Timeout time.Duration
	// FetchTimeout bounds one exchange as a whole; 10 minutes if zero.
	FetchTimeout time.Duration
	// Now is the clock for ages and back-off; time.Now if nil.
	Now func() time.Time
	// Concurrency is how many exchanges with servers run at once; 8 if zero.
	Concurrency int
	// MaxPackBytes bounds what one fetch may send; 1 GiB if zero.
	MaxPackBytes int64
	// MaxObjectBytes bounds the size of any file in a repository; 128 MiB if zero.
	MaxObjectBytes int64
	// MaxFileBytes bounds the files that are read; 64 MiB if zero.
	MaxFileBytes int64
	// MaxDiskBytes bounds all mirrors together; those used longest ago go first. 8 GiB if zero.
	MaxDiskBytes int64
	// IdleAfter is when a repository that nobody asks for is forgotten; 1 hour if zero.
	IdleAfter time.Duration
	// Dial opens connections for SSH; nil means direct, or through the proxy named by the environment.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func (o Options) withDefaults() Options {
	setDefault(&o.Timeout, 30*time.Second)
	setDefault(&o.FetchTimeout, 10*time.Minute)
	setDefault(&o.Concurrency, 8)
	setDefault(&o.MaxPackBytes, 1<<30)
	setDefault(&o.MaxObjectBytes, 128<<20)
	setDefault(&o.MaxFileBytes, 64<<20)
	setDefault(&o.MaxDiskBytes, 8<<30)
	setDefault(&o.IdleAfter, time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

func setDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}

// Service reads git repositories for a whole process. Make one with New.
type Service struct {
	options Options
	mirrors string
	hosts   *gates

	// base ends when the service is closed; work shared by callers runs under it, so that one caller
	// giving up does not take the result from the others.
	base   context.Context
	cancel context.CancelFunc
	slots  chan struct{}

	// starting guards closed, and that no work starts once it is set; no lock is taken under it.
	starting sync.Mutex
	closed   bool
	work     sync.WaitGroup

	generation atomic.Int64

	// mu is taken before the lock of a repository.
	mu           sync.Mutex
	repositories map[string]*repository
}

// ErrClosed is the error of a Service that was closed.
var ErrClosed = errors.New("git service is closed")

// New returns a Service with no repository in it. It removes mirrors a former process left.
func New(options Options) (*Service, error) {
	options = options.withDefaults()
	if options.Dir == "" {
		return nil, errors.New("git service needs a folder for mirrors")
	}
	mirrors := filepath.Join(options.Dir, "git-mirrors")
	if err := errors.Join(os.RemoveAll(mirrors), os.MkdirAll(mirrors, 0o700)); err != nil {
		return nil, fmt.Errorf("prepare folder for git mirrors: %w", err)
	}
	base, cancel := context.WithCancel(context.Background())
	return &Service{
		options:      options,
		mirrors:      mirrors,
		hosts:        newGates(),
		base:         base,
		cancel:       cancel,
		slots:        make(chan struct{}, options.Concurrency),
		repositories: map[string]*repository{},
	}, nil
}

// Close ends what is running and removes the mirrors. Trees must be closed before.
func (s *Service) Close() error {
	s.starting.Lock()
	s.closed = true
	s.starting.Unlock()
	s.cancel()
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, r := range s.repositories {
		r.forget()
		delete(s.repositories, key)
	}
	if err := os.RemoveAll(s.mirrors); err != nil {
		return fmt.Errorf("remove git mirrors: %w", err)
	}
	return nil
}

// Resolve returns the commit that the source means. A listing that was started at most maxAge ago is
// used again; zero asks the server, together with whoever asks meanwhile. A revision that is a commit
// id is returned as it is, without asking. A branch or tag that does not exist is a stalled error with
// reason BranchNotFound or RevisionNotFound.
func (s *Service) Resolve(ctx context.Context, source Source, maxAge time.Duration) (string, error) {
	if isCommitID(source.Revision) {
		return source.Revision, nil
	}
	r, err := s.repository(source)
	if err != nil {
		return "", err
	}
	listing, err := r.listing(ctx, s.options.Now().Add(-maxAge))
	if err != nil {
		return "", err
	}
	return pick(listing, source, r.address)
}

// Tree is one commit as a read-only file system.
type Tree = store.Tree

// Checkout returns the files of a commit, fetched when they are not there. The context also bounds
// the fetching of submodules while the tree is read. The caller closes the tree.
func (s *Service) Checkout(ctx context.Context, source Source, commit string) (*Tree, error) {
	return s.checkout(ctx, source, strings.ToLower(commit), 0)
}

// repository returns the state shared by all who see a repository in the same way.
func (s *Service) repository(source Source) (*repository, error) {
	if s.isClosed() {
		return nil, ErrClosed
	}
	key := source.key()
	now := s.options.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.repositories[key]; r != nil {
		r.touch(now)
		return r, nil
	}
	s.dropIdle(now)
	parsed, err := address.Parse(source.URL)
	if err != nil {
		return nil, err
	}
	remote, err := wire.New(wire.Options{
		Address:               parsed,
		Auth:                  source.Auth,
		CABundle:              source.CABundle,
		InsecureSkipTLSVerify: source.InsecureSkipTLSVerify,
		Timeout:               s.options.Timeout,
		Now:                   s.options.Now,
		ScratchDir:            s.mirrors,
		Dial:                  s.options.Dial,
	})
	if err != nil {
		return nil, err
	}
	r := newRepository(s, parsed, remote)
	r.touch(now)
	s.repositories[key] = r
	return r, nil
}

func (s *Service) isClosed() bool {
	s.starting.Lock()
	defer s.starting.Unlock()
	return s.closed
}

// dropIdle forgets repositories nobody asked for lately: deleted GitRepos, and rotated credentials.
func (s *Service) dropIdle(now time.Time) {
	for key, r := range s.repositories {
		if r.idleSince(now) > s.options.IdleAfter {
			r.forget()
			delete(s.repositories, key)
		}
	}
	s.hosts.sweep(now.Add(-s.options.IdleAfter))
}

// makeRoom removes mirrors, those used longest ago first, until all of them fit; keep stays.
func (s *Service) makeRoom(keep *repository) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var total int64
		var oldest *repository
		for _, r := range s.repositories {
			bytes := r.diskBytes()
			total += bytes
			if r != keep && bytes > 0 && (oldest == nil || r.lastUse().Before(oldest.lastUse())) {
				oldest = r
			}
		}
		if total <= s.options.MaxDiskBytes || oldest == nil {
			return
		}
		oldest.dropStore()
	}
}

// newStore makes an empty mirror under a name that was not used before.
func (s *Service) newStore() (*store.Store, error) {
	name := strconv.FormatInt(s.generation.Add(1), 10)
	return store.Create(filepath.Join(s.mirrors, name), store.Limits{Pack: s.options.MaxPackBytes, Object: s.options.MaxObjectBytes})
}

// share runs work in the background for all who wait on the returned call.
func share[T any](s *Service, work func(ctx context.Context) (T, error)) (*call[T], error) {
	s.starting.Lock()
	defer s.starting.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	c := &call[T]{started: s.options.Now(), done: make(chan struct{})}
	s.work.Go(func() {
		defer close(c.done)
		ctx, cancel := context.WithTimeout(s.base, s.options.FetchTimeout)
		defer cancel()
		c.value, c.err = work(ctx)
	})
	return c, nil
}

// call is work in progress, or its result.
type call[T any] struct {
	started time.Time
	done    chan struct{}
	value   T
	err     error
}

func (c *call[T]) wait(ctx context.Context) (T, error) {
	select {
	case <-c.done:
		return c.value, c.err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}

// exchange runs one exchange with a server, unless host or repository is to be left alone, and as soon
// as a slot is free; then it notes how it went.
func (s *Service) exchange(ctx context.Context, r *repository, work func() error) error {
	host := s.hosts.of(r.address.HostPort())
	if err := host.enter(s.options.Now()); err != nil {
		return err
	}
	if err := r.gate.enter(s.options.Now()); err != nil {
		host.abandon()
		return err
	}
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		host.abandon()
		r.gate.abandon()
		return ctx.Err()
	}
	err := work()
	<-s.slots
	return settle(host, &r.gate, s.options.Now(), err)
}
