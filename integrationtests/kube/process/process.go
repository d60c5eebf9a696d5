package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// Parent starts children from a single OS thread that lives until Close. Linux ends a child when the
// thread that started it ends (Attributes), and Go may end any thread that is not held.
type Parent struct {
	starts chan func()
	once   sync.Once
}

// NewParent returns a parent without children. It must be closed.
func NewParent() *Parent {
	p := &Parent{starts: make(chan func())}
	go func() {
		// Not unlocked: with the goroutine the thread ends too, and with it what children it still has.
		runtime.LockOSThread()
		for start := range p.starts {
			start()
		}
	}()
	return p
}

// Close gives up the thread, which on Linux kills the children that still run. Nothing can be
// started afterwards.
func (p *Parent) Close() { p.once.Do(func() { close(p.starts) }) }

func (p *Parent) start(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	p.starts <- func() { done <- cmd.Start() }
	return <-done
}

// Command says what to run.
type Command struct {
	// Name is what errors call it.
	Name string
	// Path of the program and its arguments.
	Path string
	Args []string
	// Dir is the working directory and HOME.
	Dir string
	// Env is added to HOME and a plain PATH. Nothing else is handed down: no proxy, kubeconfig or
	// Kubernetes service of this process's surroundings steers a child.
	Env []string
	// Log is the file that standard output and error of all runs are added to.
	Log string
}

// Process is a program that runs, or ran, and can be started again.
type Process struct {
	parent  *Parent
	command Command

	mu      sync.Mutex
	child   *os.Process
	exited  chan struct{} // closed when the current run has ended
	failure error         // how it ended, unless it was meant to
	meant   bool
}

// Start starts a program and returns without waiting for it to be of use.
func (p *Parent) Start(command Command) (*Process, error) {
	process := &Process{parent: p, command: command}
	if err := process.Start(); err != nil {
		return nil, err
	}
	return process, nil
}

// Start starts the program again after it ended.
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return fmt.Errorf("start %s: it is running", p.command.Name)
	}
	log, err := openLog(p.command.Log)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.command.Name, err)
	}
	defer log.Close() // the child has its own copy

	cmd := exec.Command(p.command.Path, p.command.Args...)
	cmd.Dir = p.command.Dir
	cmd.Env = append([]string{"HOME=" + p.command.Dir, "PATH=/usr/local/bin:/usr/bin:/bin"}, p.command.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = Attributes()
	if err := p.parent.start(cmd); err != nil {
		return fmt.Errorf("start %s: %w", p.command.Name, err)
	}
	exited := make(chan struct{})
	p.child, p.exited, p.failure, p.meant = cmd.Process, exited, nil, false
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.meant {
			p.failure = fmt.Errorf("%s ended by itself (%s): see %s", p.command.Name, exitText(err), p.command.Log)
		}
		close(exited)
	}()
	return nil
}

// Kill ends the current run at once (SIGKILL) and returns when it has ended. It does nothing when the
// program does not run.
func (p *Process) Kill() error {
	exited, err := p.signal(syscall.SIGKILL)
	if err != nil {
		return err
	}
	<-exited
	return nil
}

// Terminate asks the current run to end (SIGTERM), kills it when the context ends first, and returns
// when it has ended. It does nothing when the program does not run.
func (p *Process) Terminate(ctx context.Context) error {
	exited, err := p.signal(syscall.SIGTERM)
	if err != nil {
		return err
	}
	select {
	case <-exited:
		return nil
	case <-ctx.Done():
		return p.Kill()
	}
}

// signal sends a signal that is meant to end the current run, and returns what is closed then.
func (p *Process) signal(s syscall.Signal) (<-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return p.exited, nil
	}
	p.meant = true
	if err := p.child.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return nil, fmt.Errorf("end %s (pid %d): %w", p.command.Name, p.child.Pid, err)
	}
	return p.exited, nil
}

// Running reports whether the program runs.
func (p *Process) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

func (p *Process) running() bool {
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

// Err returns an error when the last run ended without being asked to.
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// Pid returns the process id of the last run.
func (p *Process) Pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child.Pid
}

// Name returns the name of the command.
func (p *Process) Name() string { return p.command.Name }

// Log returns the path of the log.
func (p *Process) Log() string { return p.command.Log }

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}
