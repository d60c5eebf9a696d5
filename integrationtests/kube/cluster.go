package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/pki"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
)

// startTimeout bounds Start and StartAPIServer. It is far beyond what they take: it is there so that
// a machine that cannot do it says so.
const startTimeout = 3 * time.Minute

// Options describe one cluster.
type Options struct {
	// Name appears in kubeconfigs, certificates, node names and messages: a DNS label.
	Name string
	// Dir holds everything the cluster writes: keys, data, kubeconfigs, logs. It is made when
	// missing and never removed; it must not hold another cluster.
	Dir string
	// Binaries are the programs to run.
	Binaries Binaries
	// Nodes is how many nodes kwok plays. With none there is no scheduler either, and pods stay
	// Pending.
	Nodes int
	// APIOnly leaves the controller manager out: a cluster in half the memory, on which no namespace
	// gets a service account or goes away, no certificate is signed and no garbage is collected.
	APIOnly bool
	// Logf, when set, is told each step of starting with the time it took.
	Logf func(format string, args ...any)
}

// Cluster is a running control plane. Its methods may be called from several goroutines.
type Cluster struct {
	options   Options
	authority *pki.Authority
	port      *process.Port
	parent    *process.Parent
	admin     Access
	clients   kubernetes.Interface
	apiServer *process.Process
	began     time.Time

	mu        sync.Mutex         // held while the API server is taken down or up, and by Stop
	processes []*process.Process // in the order of their start
	stopped   bool
}

// Start starts a cluster and returns when it is ready for use: the API server serves with RBAC's
// default roles in place, the controllers work, and all nodes are Ready and take pods. On an error
// nothing is left running. The caller must call Stop; the context only bounds the start.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := prepare(options)
	if err != nil {
		return nil, fmt.Errorf("start cluster %s: %w", options.Name, err)
	}
	if err := c.run(ctx); err != nil {
		return nil, fmt.Errorf("start cluster %s: %w", options.Name, errors.Join(err, c.Stop()))
	}
	return c, nil
}

// StartAll starts several clusters at the same time, in the order of options in the result. When one
// does not start, none is left running.
func StartAll(ctx context.Context, options []Options) ([]*Cluster, error) {
	clusters := make([]*Cluster, len(options))
	group, ctx := errgroup.WithContext(ctx)
	for i, o := range options {
		group.Go(func() error {
			c, err := Start(ctx, o)
			clusters[i] = c
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, StopAll(clusters))
	}
	return clusters, nil
}

// StopAll stops clusters at the same time; nil ones are passed over.
func StopAll(clusters []*Cluster) error {
	failures := make([]error, len(clusters))
	var group sync.WaitGroup
	for i, c := range clusters {
		if c != nil {
			group.Go(func() { failures[i] = c.Stop() })
		}
	}
	group.Wait()
	return errors.Join(failures...)
}

// prepare makes everything of a cluster that is not a process.
func prepare(options Options) (*Cluster, error) {
	if options.Logf == nil {
		options.Logf = func(string, ...any) {}
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, err
	}
	options.Dir = dir
	if err := os.MkdirAll(filepath.Join(dir, accessDir), 0o700); err != nil {
		return nil, err
	}
	ca, err := pki.NewAuthority(options.Name)
	if err != nil {
		return nil, err
	}
	if err := writeKeys(dir, ca); err != nil {
		return nil, err
	}
	if err := writeSettings(dir); err != nil {
		return nil, err
	}
	port, err := process.ReservePort()
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, authority: ca, port: port, parent: process.NewParent(), began: time.Now()}
	if err := c.openAdmin(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// run starts the processes, each as early as it is of use.
func (c *Cluster) run(ctx context.Context) error {
	if _, err := c.startProcess(Etcd, etcdArgs()); err != nil {
		return err
	}
	server, err := c.startProcess(APIServer, apiServerArgs(c.port.Number()))
	if err != nil {
		return err
	}
	c.apiServer = server
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	c.step("API server serves")
	if err := c.startControllers(); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.createNodes(ctx) })
	group.Go(func() error { return c.waitControllers(ctx) })
	return group.Wait()
}

// startControllers starts all clients of the API server that belong to the control plane.
func (c *Cluster) startControllers() error {
	type controller struct {
		program, user string
		groups        []string
		args          func(kubeconfig string) []string
	}
	var wanted []controller
	if !c.options.APIOnly {
		wanted = append(wanted, controller{ControllerManager, controllerManagerUser, nil, controllerManagerArgs})
	}
	if c.options.Nodes > 0 {
		wanted = append(wanted,
			controller{Scheduler, schedulerUser, nil, schedulerArgs},
			controller{Kwok, kwokUser, []string{mastersGroup}, kwokArgs})
	}
	for _, w := range wanted {
		access, err := c.User(w.user, w.groups...)
		if err != nil {
			return err
		}
		if _, err := c.startProcess(w.program, w.args(access.Kubeconfig)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startProcess(program string, args []string) (*process.Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("start %s: the cluster is stopped", program)
	}
	p, err := c.parent.Start(process.Command{
		Name: program,
		Path: c.options.Binaries.Path(program),
		Args: args,
		Dir:  c.options.Dir,
		Log:  filepath.Join(c.options.Dir, logsDir, program+".log"),
	})
	if err != nil {
		return nil, err
	}
	c.processes = append(c.processes, p)
	return p, nil
}

// StopAPIServer kills the API server (SIGKILL), as a crash of its machine would: requests in flight
// are cut and until StartAPIServer connections are refused. Stored data stays.
func (c *Cluster) StopAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.apiServer.Kill()
}

// StartAPIServer starts the API server again after StopAPIServer, at the same address with the same
// data, and returns when it is ready. Controllers and nodes find it again by themselves.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.reviveAPIServer(); err != nil {
		return fmt.Errorf("cluster %s: %w", c.options.Name, err)
	}
	if err := c.waitReady(ctx); err != nil {
		return fmt.Errorf("cluster %s: %w", c.options.Name, err)
	}
	return nil
}

func (c *Cluster) reviveAPIServer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errors.New("start the API server: the cluster is stopped")
	}
	return c.apiServer.Start()
}

// RestartAPIServer is StopAPIServer followed by StartAPIServer.
func (c *Cluster) RestartAPIServer(ctx context.Context) error {
	if err := c.StopAPIServer(); err != nil {
		return err
	}
	return c.StartAPIServer(ctx)
}

// Stop kills all processes of the cluster and returns when they are gone. The error names those that
// had ended by themselves before. A second Stop does nothing.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	var failures []error
	for i := len(c.processes) - 1; i >= 0; i-- {
		p := c.processes[i]
		failures = append(failures, p.Err(), p.Kill())
	}
	c.parent.Close()
	failures = append(failures, c.port.Release())
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("cluster %s: %w", c.options.Name, err)
	}
	return nil
}

func (c *Cluster) step(what string) {
	c.options.Logf("%s: %s after %s", c.options.Name, what, time.Since(c.began).Round(10*time.Millisecond))
}
