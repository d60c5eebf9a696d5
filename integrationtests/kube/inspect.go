package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
)

// Err returns an error that names the processes which ended by themselves; none should.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var failures []error
	for _, p := range c.processes {
		failures = append(failures, p.Err())
	}
	return errors.Join(failures...)
}

// Processes returns the process ids of what runs now, by program.
func (c *Cluster) Processes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids := map[string]int{}
	for _, p := range c.processes {
		if p.Running() {
			pids[p.Name()] = p.Pid()
		}
	}
	return pids
}

// Name returns the name the cluster was started with.
func (c *Cluster) Name() string { return c.options.Name }

// Dir returns the folder of the cluster's files, as an absolute path.
func (c *Cluster) Dir() string { return c.options.Dir }

// Binaries returns the programs the cluster runs, kubectl among them.
func (c *Cluster) Binaries() Binaries { return c.options.Binaries }

// Logs returns the path of each process's log, in the order of their start. They hold the output of
// all runs, and stay after Stop.
func (c *Cluster) Logs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	paths := make([]string, len(c.processes))
	for i, p := range c.processes {
		paths[i] = p.Log()
	}
	return paths
}

// MutatingRequests returns how many requests that ask for a change the API server has answered since
// it was last started. The API server counts just after it has answered, so that the last answer a
// caller got may not be in yet; package writes says what its counts leave open.
func (c *Cluster) MutatingRequests(ctx context.Context) (writes.Requests, error) {
	stream, err := c.clients.Discovery().RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read metrics of %s: %w", c.options.Name, err)
	}
	defer stream.Close()
	requests, err := writes.ParseMetrics(stream)
	if err != nil {
		return nil, fmt.Errorf("read metrics of %s: %w", c.options.Name, err)
	}
	return requests, nil
}

// Writes returns all writes since the cluster was started, in the order of their answers, those of an
// API server that was killed included. Where MutatingRequests counts, this says who wrote what. An
// answer may be entered just after it was given.
func (c *Cluster) Writes() ([]writes.Write, error) {
	file, err := os.Open(filepath.Join(c.options.Dir, auditLogFile))
	if err != nil {
		return nil, fmt.Errorf("read audit log of %s: %w", c.options.Name, err)
	}
	defer file.Close()
	all, err := writes.ParseAuditLog(file)
	if err != nil {
		return nil, fmt.Errorf("read audit log of %s: %w", c.options.Name, err)
	}
	return all, nil
}

// LogTails returns the last lines of each process's log under a line with its path, for people who
// have to find out why something failed.
func (c *Cluster) LogTails(lines int) string {
	var out strings.Builder
	for _, path := range c.Logs() {
		content, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintf(&out, "--- %v\n", err)
			continue
		}
		fmt.Fprintf(&out, "--- %s: %s\n%s\n", c.options.Name, path, lastLines(content, lines))
	}
	return out.String()
}

// shownWidth is where LogTails cuts a line: some components write stack traces into one.
const shownWidth = 300

func lastLines(content []byte, n int) []byte {
	all := bytes.Split(bytes.TrimRight(content, "\n"), []byte("\n"))
	last := all[max(0, len(all)-n):]
	shown := make([][]byte, len(last))
	for i, line := range last {
		shown[i] = line[:min(len(line), shownWidth)]
	}
	return bytes.Join(shown, []byte("\n"))
}

// RemoveData removes what a stopped cluster has written, but for its logs.
func (c *Cluster) RemoveData() error {
	entries, err := os.ReadDir(c.options.Dir)
	if err != nil {
		return fmt.Errorf("remove data of %s: %w", c.options.Name, err)
	}
	var failures []error
	for _, entry := range entries {
		if entry.Name() != logsDir {
			failures = append(failures, os.RemoveAll(filepath.Join(c.options.Dir, entry.Name())))
		}
	}
	return errors.Join(failures...)
}

// Clients returns the administrator's clients for the built-in kinds.
func (c *Cluster) Clients() kubernetes.Interface { return c.clients }

// Kubectl runs kubectl as the administrator and returns what it printed on standard output. The
// error holds what it printed on standard error.
func (c *Cluster) Kubectl(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.options.Binaries.Path(Kubectl), args...)
	cmd.Dir = c.options.Dir
	cmd.Env = []string{"HOME=" + c.options.Dir, "PATH=/usr/bin:/bin", "KUBECONFIG=" + c.admin.Kubeconfig}
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s on %s: %w: %s", strings.Join(args, " "), c.options.Name, err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
