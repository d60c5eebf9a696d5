package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
)

// Shards are the ones that this process has. Whoever decides that, Leader or Members, calls acquire and lose;
// controllers ask before each piece of work.
type Shards struct {
	count int
	// ref is the label value of the objects this process is for; empty for objects without the label.
	ref string
	log logr.Logger

	mu       sync.Mutex
	held     map[int]*tenure
	taken    int // so often a shard came to this process
	lost     int // and was lost or given up
	prepare  []Prepare
	takeover []func(context.Context, map[int]bool)
}

// New returns so many shards, of which the process has none yet, of objects that carry ref as shard-ref label.
func New(count int, ref string, log logr.Logger) *Shards {
	return &Shards{count: count, ref: ref, log: log, held: map[int]*tenure{}}
}

// tenure is the right to work on one shard.
type tenure struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	// valid says that nobody else can have the shard now.
	valid func() bool

	// The following are guarded by Shards.mu.
	working  int
	draining bool
	idle     chan struct{} // closed when draining and nothing is under way
}

// errLost is the cause with which contexts of work end whose shard is lost.
var errLost = errors.New("this process has lost the shard")

// Prepare does what has to be done after shards came to this process and before it works on them, such as
// finding out what their last holder wrote. mine says which keys are among them.
type Prepare func(ctx context.Context, mine func(namespace, name string) bool) error

// BeforeWork registers a preparation. Call it before anything runs.
func (s *Shards) BeforeWork(prepare Prepare) {
	if s != nil {
		s.prepare = append(s.prepare, prepare)
	}
}

// acquire makes shards this process's, for as long as valid says so.
func (s *Shards) acquire(ctx context.Context, shards []int, valid func() bool) error {
	mine := func(namespace, name string) bool { return slices.Contains(shards, Of(namespace, name, s.count)) }
	for _, prepare := range s.prepare {
		if err := prepare(ctx, mine); err != nil {
			return fmt.Errorf("prepare to work on shards: %w", err)
		}
	}
	s.mu.Lock()
	taken := map[int]bool{}
	for _, shard := range shards {
		if s.held[shard] == nil {
			held := &tenure{valid: valid}
			held.ctx, held.cancel = context.WithCancelCause(ctx)
			s.held[shard] = held
			taken[shard] = true
			s.taken++
		}
	}
	s.mu.Unlock()
	if len(taken) == 0 {
		return nil
	}
	s.log.Info("shards taken", "shards", len(taken), "of", s.count)
	for _, enqueue := range s.takeover {
		enqueue(ctx, taken)
	}
	return nil
}

// lose ends the work on shards at once.
func (s *Shards) lose(shards []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, shard := range shards {
		if held := s.held[shard]; held != nil {
			held.cancel(errLost)
			delete(s.held, shard)
			s.lost++
		}
	}
}

// all lists the shards that are held, draining ones among them.
func (s *Shards) all() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []int
	for shard := range s.held {
		list = append(list, shard)
	}
	slices.Sort(list)
	return list
}

// drain lets no more work on shards begin, and returns a channel for each that is closed when the last one is
// done.
func (s *Shards) drain(shards []int) []<-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	var idle []<-chan struct{}
	for _, shard := range shards {
		held := s.held[shard]
		if held == nil {
			continue
		}
		if !held.draining {
			held.draining, held.idle = true, make(chan struct{})
			if held.working == 0 {
				close(held.idle)
			}
		}
		idle = append(idle, held.idle)
	}
	return idle
}

// idle says that a draining shard has no work under way.
func (s *Shards) isIdle(shard int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held[shard]
	return held != nil && held.draining && held.working == 0
}

// begin starts a piece of work; ok is false when the shard of the key is not this process's. The context ends
// with the tenure. done must be called.
func (s *Shards) begin(ctx context.Context, namespace, name string) (work context.Context, done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.held[Of(namespace, name, s.count)]
	if held == nil || held.draining || !held.valid() {
		return nil, nil, false
	}
	held.working++
	work, cancel := context.WithCancelCause(withTenure(ctx, held))
	stop := context.AfterFunc(held.ctx, func() { cancel(errLost) })
	return work, func() {
		stop()
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		held.working--
		if held.draining && held.working == 0 {
			close(held.idle)
		}
	}, true
}
