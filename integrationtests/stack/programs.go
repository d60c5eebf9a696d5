package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The programs of a stack, by the names that `make build` and logs have them under.
const (
	controllerProgram = "fleet-controller"
	agentProgram      = "fleet-agent"
)

// Programs are where fleet-controller and fleet-agent are.
type Programs struct {
	Controller, Agent string
}

// FindPrograms returns the programs in a folder, as `make build` leaves them.
func FindPrograms(dir string) (Programs, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return Programs{}, err
	}
	p := Programs{Controller: filepath.Join(absolute, controllerProgram), Agent: filepath.Join(absolute, agentProgram)}
	for _, path := range []string{p.Controller, p.Agent} {
		if _, err := exec.LookPath(path); err != nil {
			return Programs{}, fmt.Errorf("find %s: %w", filepath.Base(path), err)
		}
	}
	return p, nil
}

// BuildPrograms builds the programs into .demo/bin of the checkout, where a second build of the same
// sources finds them linked: all tests use the same. What the compiler says goes to output.
func BuildPrograms(ctx context.Context, output io.Writer) (Programs, error) {
	root, err := ModuleRoot()
	if err != nil {
		return Programs{}, err
	}
	dir := filepath.Join(root, ".demo", "bin")
	unlock, err := lock(dir)
	if err != nil {
		return Programs{}, fmt.Errorf("build programs: %w", err)
	}
	defer unlock()
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", dir+string(filepath.Separator), "./cmd/fleetcontroller", "./cmd/fleetagent")
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, output, output
	if err := cmd.Run(); err != nil {
		return Programs{}, fmt.Errorf("build programs: %w", errors.Join(err, ctx.Err()))
	}
	return Programs{Controller: filepath.Join(dir, "fleetcontroller"), Agent: filepath.Join(dir, "fleetagent")}, nil
}

// lock keeps two processes from building into one folder at a time.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}

// ModuleRoot returns the folder of this checkout, found from the working directory upwards.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "charts", "fleet", "Chart.yaml")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the module: neither %s nor a folder above it holds this repository", start)
		}
	}
}
