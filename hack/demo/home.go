package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/stack"
)

// home is the folder of the demo, .demo in the checkout. One demo runs at a time: it holds a lock on a file
// there, which goes with its process however that ends.
type home struct{ dir string }

func (h home) run() string       { return filepath.Join(h.dir, "run") }
func (h home) stateFile() string { return filepath.Join(h.dir, "state.json") }

// state is what another process needs to stop a demo.
type state struct {
	// Pid of the demo.
	Pid int `json:"pid"`
	// Processes are its children, by name.
	Processes map[string]int `json:"processes"`
}

var errRunning = errors.New("a demo is running already")

// lock takes the lock and returns what gives it back.
func (h home) lock() (func(), error) {
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(h.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		known, _ := h.read()
		return nil, errors.Join(fmt.Errorf("%w (pid %d): `make demo-down` stops it", errRunning, known.Pid), file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	return func() { _ = file.Close() }, nil
}

func (h home) read() (state, error) {
	var s state
	content, err := os.ReadFile(h.stateFile())
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(content, &s)
}

// record writes which processes there are.
func (h home) record(processes map[string]int) error {
	content, err := json.MarshalIndent(state{Pid: os.Getpid(), Processes: processes}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(h.stateFile(), append(content, '\n'), 0o600)
}

// clean makes an empty folder for a run, after ending what an earlier one may have left: where the system
// does not tie children to their parent, a demo that was killed leaves them.
func (h home) clean() error {
	if err := h.endLeft(); err != nil {
		return err
	}
	if err := os.RemoveAll(h.run()); err != nil {
		return err
	}
	return os.MkdirAll(h.run(), 0o755)
}

func (h home) endLeft() error {
	left, err := h.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", h.stateFile(), err)
	}
	for name, pid := range left.Processes {
		if runs(pid, name) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone by now is as good
		}
	}
	return os.Remove(h.stateFile())
}

// runs tells whether a process is the program its name ends with, and not another that was given its id.
func runs(pid int, name string) bool {
	out, err := exec.Command("ps", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return false
	}
	path, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	program := filepath.Base(name)
	return strings.HasPrefix(program, filepath.Base(path)) && filepath.Base(path) != "."
}

// stopPatience is how long a demo may take to stop before it is killed.
const stopPatience = 20 * time.Second

// down stops a demo that runs and returns when it is gone.
func (h home) down(ctx context.Context, out io.Writer) error {
	release, err := h.lock()
	if err == nil {
		defer release()
		fmt.Fprintln(out, "no demo is running")
		return h.endLeft()
	}
	if !errors.Is(err, errRunning) {
		return err
	}
	running, err := h.read()
	if err != nil {
		return fmt.Errorf("find the demo that runs: %w", err)
	}
	if err := syscall.Kill(running.Pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the demo (pid %d): %w", running.Pid, err)
	}
	if release, err = h.lockWithin(ctx, stopPatience); err != nil {
		fmt.Fprintln(out, "it does not stop; killing it")
		if err := syscall.Kill(running.Pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("kill the demo (pid %d): %w", running.Pid, err)
		}
		if release, err = h.lockWithin(ctx, stopPatience); err != nil {
			return err
		}
	}
	defer release()
	fmt.Fprintln(out, "stopped")
	return h.endLeft()
}

// lockWithin takes the lock as soon as it is free.
func (h home) lockWithin(ctx context.Context, patience time.Duration) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = stack.Await(ctx, "the demo has stopped", func(context.Context) error {
		var err error
		release, err = h.lock()
		return err
	})
	return release, err
}
