package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/address"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/store"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/wire"
)

const (
	// maxHaves is how many of the latest commits are named to a server for it to build on.
	maxHaves = 16
	// maxPacks and growth say when a mirror has gathered so much that fetching anew is cheaper.
	maxPacks    = 50
	growth      = 4
	smallMirror = 64 << 20
	// maxSubmodules is how deep submodules may lie in one another.
	maxSubmodules = 8
)

// repository is what is known of one repository as seen with one credential.
type repository struct {
	service *Service
	address address.Address
	remote  *wire.Remote
	gate    gate

	// fetching lets one fetch at a time write to the mirror.
	fetching sync.Mutex

	mu       sync.Mutex
	used     time.Time
	latest   *call[*wire.Listing]
	inFlight *call[*wire.Listing]
	fetches  map[string]*call[struct{}]
	mirror   *store.Store
	// known are the commits of the mirror, in the order they came.
	known []wire.Commit
	// absent are commits that the whole repository, as it was listed, does not have.
	absent map[string]*wire.Listing
}

func newRepository(s *Service, at address.Address, remote *wire.Remote) *repository {
	return &repository{
		service: s, address: at, remote: remote,
		fetches: map[string]*call[struct{}]{}, absent: map[string]*wire.Listing{},
	}
}

func (r *repository) touch(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = now
}

func (r *repository) lastUse() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}

// idleSince returns how long nobody asked for the repository; zero while something runs.
func (r *repository) idleSince(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inFlight != nil || len(r.fetches) > 0 {
		return 0
	}
	return now.Sub(r.used)
}

func (r *repository) forget() {
	r.dropStore()
	r.remote.Close()
}

// dropStore gives the mirror's disk back; the next checkout fetches anew.
func (r *repository) dropStore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mirror != nil {
		r.mirror.Retire()
		r.mirror, r.known = nil, nil
	}
}

func (r *repository) diskBytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mirror == nil {
		return 0
	}
	_, bytes, _ := r.mirror.Size()
	return bytes
}

// listing returns a listing that was started no earlier than notBefore. One that is on its way but
// started earlier does not do: what the caller was told of may have happened since. Whoever finds
// such a one waits for it, and then shares the next.
func (r *repository) listing(ctx context.Context, notBefore time.Time) (*wire.Listing, error) {
	for {
		c, err := r.join(notBefore)
		if err != nil {
			return nil, err
		}
		listing, err := c.wait(ctx)
		if !c.started.Before(notBefore) || ctx.Err() != nil {
			return listing, err
		}
	}
}

func (r *repository) join(notBefore time.Time) (*call[*wire.Listing], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest != nil && !r.latest.started.Before(notBefore) {
		return r.latest, nil
	}
	if r.inFlight != nil {
		return r.inFlight, nil
	}
	var c *call[*wire.Listing]
	c, err := share(r.service, func(ctx context.Context) (*wire.Listing, error) {
		listing, err := r.list(ctx)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.inFlight = nil
		if err == nil {
			r.latest = c
		}
		return listing, err
	})
	r.inFlight = c
	return c, err
}

func (r *repository) list(ctx context.Context) (listing *wire.Listing, err error) {
	err = r.service.exchange(ctx, r, func() error {
		listing, err = r.remote.List(ctx)
		return err
	})
	return listing, err
}

// open returns the tree of a commit when the mirror has it, and nil when not.
func (r *repository) open(commit string, mount store.Mount) (*store.Tree, error) {
	r.mu.Lock()
	mirror := r.mirror
	r.mu.Unlock()
	if mirror == nil || !mirror.Has(commit) {
		return nil, nil
	}
	return mirror.Open(commit, r.service.options.MaxFileBytes, mount)
}

// fetch brings a commit into the mirror; callers who want the same commit share one fetch.
func (r *repository) fetch(ctx context.Context, commit string) error {
	r.mu.Lock()
	c := r.fetches[commit]
	if c == nil {
		var err error
		c, err = share(r.service, func(ctx context.Context) (struct{}, error) {
			err := r.bring(ctx, commit)
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.fetches, commit)
			return struct{}{}, err
		})
		if err != nil {
			r.mu.Unlock()
			return err
		}
		r.fetches[commit] = c
	}
	r.mu.Unlock()
	_, err := c.wait(ctx)
	return err
}

// bring fetches one commit without its history or, from a server that serves only what references
// point to, the whole repository.
func (r *repository) bring(ctx context.Context, commit string) error {
	r.fetching.Lock()
	defer r.fetching.Unlock()
	listing, err := r.lastListing(ctx)
	if err != nil {
		return err
	}
	mirror, known, err := r.writable()
	if err != nil {
		return err
	}
	if mirror.Has(commit) {
		return nil
	}
	err = r.add(ctx, mirror, listing, wire.Request{Wants: []string{commit}, Haves: known})
	if errors.Is(err, wire.ErrNotServed) {
		return r.bringAll(ctx, commit)
	}
	return err
}

// lastListing returns any listing: it says what the server is capable of, and where it is.
func (r *repository) lastListing(ctx context.Context) (*wire.Listing, error) {
	r.mu.Lock()
	latest := r.latest
	r.mu.Unlock()
	if latest != nil {
		return latest.wait(ctx)
	}
	return r.listing(ctx, time.Time{})
}

// add fetches into a mirror and remembers the commits that came.
func (r *repository) add(ctx context.Context, mirror *store.Store, listing *wire.Listing, request wire.Request) error {
	var shallow wire.Shallow
	err := r.service.exchange(ctx, r, func() error {
		return mirror.Add(func(pack io.Writer) (err error) {
			shallow, err = r.remote.Fetch(ctx, listing, request, pack)
			return err
		})
	})
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		// The server may have moved or changed; look at it again before the next fetch.
		r.latest = nil
		return fmt.Errorf("update mirror of %s: %w", r.address, err)
	}
	r.mu.Lock()
	for _, want := range request.Wants {
		r.known = append(r.known, wire.Commit{ID: want, Shallow: shallow})
	}
	r.known = r.known[max(0, len(r.known)-maxHaves):]
	r.mu.Unlock()
	r.service.makeRoom(r)
	return nil
}

// writable returns the mirror to fetch into and the commits in it. A mirror that has grown too much
// is replaced; trees that are open keep the old one.
func (r *repository) writable() (*store.Store, []wire.Commit, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mirror != nil {
		packs, bytes, first := r.mirror.Size()
		if packs < maxPacks && bytes < max(smallMirror, growth*first) {
			return r.mirror, slices.Clone(r.known), nil
		}
		r.mirror.Retire()
		r.mirror, r.known = nil, nil
	}
	fresh, err := r.service.newStore()
	if err != nil {
		return nil, nil, err
	}
	r.mirror = fresh
	return fresh, nil, nil
}

// bringAll fetches everything the repository has, for a commit that cannot be asked for by itself.
// The answer that it has no such commit holds until its references change.
func (r *repository) bringAll(ctx context.Context, commit string) error {
	listing, err := r.listing(ctx, r.service.options.Now())
	if err != nil {
		return err
	}
	notFound := fault.New(fault.Stalled, ReasonRevisionNotFound, "%s has no commit %s on any branch or tag", r.address, commit)
	r.mu.Lock()
	seen := r.absent[commit]
	r.mu.Unlock()
	if seen != nil && maps.Equal(seen.Branches, listing.Branches) && maps.Equal(seen.Tags, listing.Tags) {
		return notFound
	}
	wants := tips(listing)
	if len(wants) == 0 {
		return notFound
	}
	fresh, err := r.service.newStore()
	if err != nil {
		return err
	}
	r.mu.Lock()
	if r.mirror != nil {
		r.mirror.Retire()
	}
	r.mirror, r.known = fresh, nil
	r.mu.Unlock()
	if err := r.add(ctx, fresh, listing, wire.Request{Wants: wants, Full: true}); err != nil {
		return err
	}
	if fresh.Has(commit) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.absent) >= maxHaves {
		clear(r.absent)
	}
	r.absent[commit] = listing
	return notFound
}

// tips returns the commits that references point to, each once, in a stable order.
func tips(listing *wire.Listing) []string {
	all := slices.Concat(slices.Collect(maps.Values(listing.Branches)), slices.Collect(maps.Values(listing.Tags)))
	slices.Sort(all)
	return slices.Compact(all)
}

// checkout opens a commit, after fetching it when needed. A mirror may be replaced between fetch and
// opening by a fetch for someone else, so it tries more than once.
func (s *Service) checkout(ctx context.Context, source Source, commit string, depth int) (*store.Tree, error) {
	if !wire.IsCommitID(commit) {
		return nil, fault.New(fault.Stalled, wire.ReasonNotSupported, "%q is not a commit id of 40 hexadecimal digits in lower case", commit)
	}
	r, err := s.repository(source)
	if err != nil {
		return nil, err
	}
	mount := func(url, commit string) (*store.Tree, error) {
		if depth >= maxSubmodules {
			return nil, fault.New(fault.Stalled, store.ReasonSubmodule, "submodules lie in one another more than %d deep", maxSubmodules)
		}
		sub, err := source.submodule(url)
		if err != nil {
			return nil, err
		}
		return s.checkout(ctx, sub, commit, depth+1)
	}
	for range 3 {
		tree, err := r.open(commit, mount)
		if tree != nil {
			return tree, nil
		}
		if err != nil && !errors.Is(err, fs.ErrClosed) {
			return nil, err
		}
		if err := r.fetch(ctx, commit); err != nil {
			return nil, err
		}
	}
	return nil, fault.New(fault.Stalled, ReasonRevisionNotFound, "%s sent no commit %s", r.address, commit)
}
