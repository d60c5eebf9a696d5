package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
)

// The programs a Binaries folder holds.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	Kubectl           = "kubectl"
)

// buildScript builds the programs and prints their folder; it is found from the working directory
// upwards, so that tests of any package and programs started at the module's root find it.
var buildScript = filepath.Join("hack", "kube", "build.sh")

// Binaries is a folder that holds all programs of a control plane.
type Binaries struct{ dir string }

// FindBinaries returns the programs in dir, or, where dir is empty, those hack/kube/build.sh keeps in
// the user's cache, which it builds first when they are missing. That takes around ten minutes once,
// and progress gets a line every few seconds. A second build waits for the first.
func FindBinaries(ctx context.Context, dir string, progress io.Writer) (Binaries, error) {
	if dir == "" {
		built, err := build(ctx, progress)
		if err != nil {
			return Binaries{}, err
		}
		dir = built
	}
	b := Binaries{dir: dir}
	for _, name := range []string{Etcd, APIServer, ControllerManager, Scheduler, Kwok, Kubectl} {
		if _, err := exec.LookPath(b.Path(name)); err != nil {
			return Binaries{}, fmt.Errorf("find %s in %s: %w", name, dir, err)
		}
	}
	return b, nil
}

// Path returns the path of one program.
func (b Binaries) Path(program string) string { return filepath.Join(b.dir, program) }

func build(ctx context.Context, progress io.Writer) (string, error) {
	script, err := findUpwards(buildScript)
	if err != nil {
		return "", err
	}
	var stdout bytes.Buffer
	cmd := exec.CommandContext(ctx, script)
	cmd.Stdout, cmd.Stderr = &stdout, progress
	cmd.SysProcAttr = process.Attributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // the script and its compiler
	cmd.WaitDelay = 10 * time.Second
	runtime.LockOSThread() // the script dies with the thread that starts it (process.Attributes)
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s: %w", script, errors.Join(err, ctx.Err()))
	}
	return string(bytes.TrimSpace(stdout.Bytes())), nil
}

// findUpwards looks for a file below the working directory and each of its parents.
func findUpwards(file string) (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", file, err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, file)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find %s: %w", file, err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find %s: not in %s nor any folder above it", file, start)
		}
	}
}
