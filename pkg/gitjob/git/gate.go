package git

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git/wire"
)

const (
	firstDelay = time.Second
	maxDelay   = 5 * time.Minute
)

// gate keeps callers away from something that fails: for a second at first, and twice as long after
// each further failure. When the time is over one caller may try, and the others wait for what it
// finds. Meanwhile everybody gets the last real error.
type gate struct {
	mu       sync.Mutex
	failures int
	until    time.Time
	err      error
	probing  bool
}

func (g *gate) enter(now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failures == 0 {
		return nil
	}
	if g.probing || now.Before(g.until) {
		return g.err
	}
	g.probing = true
	return nil
}

// abandon leaves the gate without having learned anything.
func (g *gate) abandon() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
}

func (g *gate) succeed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures, g.err, g.probing = 0, nil, false
}

// fail closes the gate for a while and returns the error that says so. It names the hour and not the
// span, so that the text stays the same for as long as it is true: it ends up in a status.
func (g *gate) fail(now time.Time, err error, atLeast time.Duration) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	delay := maxDelay
	if g.failures < 16 {
		delay = min(firstDelay<<g.failures, maxDelay)
	}
	if until := now.Add(max(delay, atLeast)); until.After(g.until) {
		g.until = until
	}
	g.failures++
	g.probing = false
	g.err = fmt.Errorf("%w; next try after %s", err, g.until.UTC().Format(time.TimeOnly+" UTC"))
	return g.err
}

func (g *gate) idleSince(limit time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.probing && g.until.Before(limit)
}

// settle notes the outcome of an exchange with the gate it concerns: a failure of the host says
// nothing about the repository, and one of the repository says that the host is well.
func settle(host, repository *gate, now time.Time, err error) error {
	var failure *wire.Failure
	switch {
	case err == nil, errors.Is(err, wire.ErrNotServed):
		host.succeed()
		repository.succeed()
		return err
	case errors.Is(err, context.Canceled):
		host.abandon()
		repository.abandon()
		return err
	case errors.Is(err, context.DeadlineExceeded):
		// The server kept sending, for longer than one exchange may take.
		host.succeed()
		return repository.fail(now, fault.Wrap(fault.Transient, wire.ReasonTimeout, err), 0)
	case errors.As(err, &failure) && failure.Scope == wire.ScopeHost:
		repository.abandon()
		return host.fail(now, err, failure.RetryAfter)
	}
	host.succeed()
	return repository.fail(now, err, 0)
}

// gates are the gates of all hosts.
type gates struct {
	mu    sync.Mutex
	hosts map[string]*gate
}

func newGates() *gates { return &gates{hosts: map[string]*gate{}} }

func (g *gates) of(host string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	found := g.hosts[host]
	if found == nil {
		found = &gate{}
		g.hosts[host] = found
	}
	return found
}

// sweep forgets hosts whose last failure is older than limit.
func (g *gates) sweep(limit time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for host, gate := range g.hosts {
		if gate.idleSince(limit) {
			delete(g.hosts, host)
		}
	}
}
