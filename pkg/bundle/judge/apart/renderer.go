package apart

import (
	"context"
	"os/exec"
	"sync"

	"github.com/go-logr/logr"

	"github.com/fairlead-dev/fairlead/pkg/bundle/judge"
)

// DefaultMemory is what rendering one bundle may take, in bytes, besides room for its files.
const DefaultMemory = 512 << 20

// Options of a Renderer.
type Options struct {
	// Command returns how a process is started that calls Serve on its standard streams.
	Command func() *exec.Cmd
	// Memory bounds one rendering, in bytes; DefaultMemory when 0.
	Memory int64
	Log    logr.Logger
}

// Renderer renders in processes of its own, and keeps one of them for the next bundle.
type Renderer struct {
	options Options

	mutex  sync.Mutex
	idle   *child
	closed bool
}

// New returns a Renderer without a process.
func New(options Options) *Renderer {
	if options.Memory <= 0 {
		options.Memory = DefaultMemory
	}
	return &Renderer{options: options}
}

// Judge does what judge.Judge does, and ends with the context.
func (r *Renderer) Judge(ctx context.Context, job judge.Job) judge.Finding {
	for {
		c, err := r.take()
		if err != nil {
			r.options.Log.Error(err, "bundle not validated", "bundle", job.Input.BundleID)
			return judge.Finding{Result: judge.GaveUp}
		}
		used := c.used
		found, err := c.ask(ctx, job)
		if err == nil {
			r.keep(c)
			return found
		}
		outOfMemory := c.end()
		switch {
		case ctx.Err() != nil:
			return judge.Finding{Result: judge.GaveUp}
		case outOfMemory && used:
			// What was left of bundles before must not count.
		case outOfMemory:
			return tooMuch(job, r.options.Memory)
		default:
			r.options.Log.Error(err, "bundle not validated", "bundle", job.Input.BundleID, "said", c.said.text())
			return judge.Finding{Result: judge.GaveUp}
		}
	}
}

// take returns the process that is kept, or a new one.
func (r *Renderer) take() (*child, error) {
	r.mutex.Lock()
	c := r.idle
	r.idle = nil
	r.mutex.Unlock()
	if c != nil {
		return c, nil
	}
	return start(r.options.Command(), r.options.Memory)
}

// keep keeps a process for the next bundle; one is enough.
func (r *Renderer) keep(c *child) {
	r.mutex.Lock()
	surplus := c
	if r.idle == nil && !r.closed {
		r.idle, surplus = c, nil
	}
	r.mutex.Unlock()
	if surplus != nil {
		surplus.end()
	}
}

// Start ends the process that is kept when the context ends.
func (r *Renderer) Start(ctx context.Context) error {
	<-ctx.Done()
	r.mutex.Lock()
	c := r.idle
	r.idle, r.closed = nil, true
	r.mutex.Unlock()
	if c != nil {
		c.end()
	}
	return nil
}
