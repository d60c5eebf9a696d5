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
	authority *authority
	port      *reservedPort
	nursery   *nursery
	admin     Access
	clients   kubernetes.Interface
	apiServer *process
	began     time.Time

	mu        sync.Mutex // held while the API server is taken down or up, and by Stop
	processes []*process // in the order of their start
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
	ca, err := newAuthority(options.Name)
	if err != nil {
		return nil, err
	}
	if err := writePKI(filepath.Join(dir, pkiDir), ca); err != nil {
		return nil, err
	}
	if err := writeSettings(dir); err != nil {
		return nil, err
	}
	port, err := reservePort()
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, authority: ca, port: port, nursery: newNursery(), began: time.Now()}
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
	server, err := c.startProcess(APIServer, apiServerArgs(c.port.number))
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

func (c *Cluster) startProcess(program string, args []string) (*process, error) {
	p := &process{
		name: program,
		path: c.options.Binaries.Path(program),
		args: args,
		dir:  c.options.Dir,
		log:  filepath.Join(c.options.Dir, logsDir, program+".log"),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("start %s: the cluster is stopped", program)
	}
	if err := p.start(c.nursery); err != nil {
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
	return c.apiServer.kill()
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
	if c.apiServer.running() {
		return errors.New("start the API server: it is running")
	}
	return c.apiServer.start(c.nursery)
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
		failures = append(failures, p.failed(), p.kill())
	}
	c.nursery.close()
	failures = append(failures, c.port.release())
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("cluster %s: %w", c.options.Name, err)
	}
	return nil
}

// Err returns an error that names the processes which ended by themselves; none should.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var failures []error
	for _, p := range c.processes {
		failures = append(failures, p.failed())
	}
	return errors.Join(failures...)
}

// Processes returns the process ids of what runs now, by program.
func (c *Cluster) Processes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids := map[string]int{}
	for _, p := range c.processes {
		if p.running() {
			pids[p.name] = p.child.Pid
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
		paths[i] = p.log
	}
	return paths
}

func (c *Cluster) step(what string) {
	c.options.Logf("%s: %s after %s", c.options.Name, what, time.Since(c.began).Round(10*time.Millisecond))
}
