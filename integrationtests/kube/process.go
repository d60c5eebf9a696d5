package kube

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// nursery starts children from a single OS thread that lives until close. Linux ends a child when
// the thread that started it ends (childAttributes), and Go may end any thread that is not held.
type nursery struct{ starts chan func() }

func newNursery() *nursery {
	n := &nursery{starts: make(chan func())}
	go func() {
		// Not unlocked: with the goroutine the thread ends too, and whatever it still had.
		runtime.LockOSThread()
		for start := range n.starts {
			start()
		}
	}()
	return n
}

func (n *nursery) start(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	n.starts <- func() { done <- cmd.Start() }
	return <-done
}

func (n *nursery) close() { close(n.starts) }

// process is one program of a cluster. It can be started again after it ended.
type process struct {
	name string
	path string
	args []string
	dir  string // working directory and HOME
	log  string // output of all its runs

	mu      sync.Mutex
	child   *os.Process
	exited  chan struct{} // closed when the current run has ended; nil before the first
	failure error         // how the current run ended, unless kill ended it
	killed  bool
}

// start runs the program and returns without waiting for it to be of use.
func (p *process) start(n *nursery) error {
	if err := os.MkdirAll(filepath.Dir(p.log), 0o750); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	defer log.Close() // the child has its own copy

	cmd := exec.Command(p.path, p.args...)
	cmd.Dir = p.dir
	// Nothing of this process's surroundings may steer a cluster: no proxy, no kubeconfig, no home.
	cmd.Env = []string{"HOME=" + p.dir, "PATH=/usr/bin:/bin"}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()

	p.mu.Lock()
	defer p.mu.Unlock()
	if err := n.start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	exited := make(chan struct{})
	p.child, p.exited, p.failure, p.killed = cmd.Process, exited, nil, false
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		if !p.killed {
			p.failure = fmt.Errorf("%s ended by itself (%s): see %s", p.name, exitText(err), p.log)
		}
		p.mu.Unlock()
		close(exited)
	}()
	return nil
}

// kill ends the current run at once (SIGKILL) and waits until it has ended. It does nothing when
// there is none.
func (p *process) kill() error {
	if !p.running() {
		return nil
	}
	p.mu.Lock()
	child, exited := p.child, p.exited
	p.killed = true
	p.mu.Unlock()
	if err := child.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s (pid %d): %w", p.name, child.Pid, err)
	}
	<-exited
	return nil
}

// running reports whether there is a current run that has not ended.
func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exited == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// failed returns an error when the current run ended without being killed.
func (p *process) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}
