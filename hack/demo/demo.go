package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/sources"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	// gitRepo is the name of the demo's GitRepo.
	gitRepo = "examples"
	// pollingInterval of the GitRepo: a push of the person at the keyboard should be seen soon.
	pollingInterval = 2 * time.Second
	// readyTimeout is how long the examples may take to run everywhere.
	readyTimeout = 5 * time.Minute
)

type options struct {
	once     bool
	programs string
}

// demo is one run.
type demo struct {
	options options
	root    string
	home    home
	out     io.Writer

	steps   stack.Steps
	stack   *stack.Stack
	sources *sources.Sources
}

// run goes through the demo and stops everything in the end, whatever happened.
func (d *demo) run(ctx context.Context) (err error) {
	d.steps.Notify = newScreen(d.out).step
	defer func() { err = errors.Join(err, d.stop()) }()
	if err := d.start(ctx); err != nil {
		return err
	}
	if d.options.once {
		return d.once(ctx)
	}
	d.introduce()
	<-ctx.Done()
	fmt.Fprintln(d.out, "\nstopping ...")
	return nil
}

// start gets everything going until the examples run.
func (d *demo) start(ctx context.Context) error {
	if err := errors.Join(d.home.clean(), d.home.record(nil)); err != nil {
		return err
	}
	options := stack.Options{Dir: d.home.run(), Nodes: 2, Steps: &d.steps}
	if err := d.prepare(ctx, &options); err != nil {
		return err
	}
	var err error
	if d.stack, err = stack.Start(ctx, options); err != nil {
		return err
	}
	if err := d.home.record(d.stack.Processes()); err != nil {
		return err
	}
	if err := d.steps.Run(ctx, "serve the examples by git and a Helm repository", "", d.serve); err != nil {
		return err
	}
	return d.steps.Run(ctx, "deploy the examples to every member", filepath.Join(d.stack.Dir(), "logs"), d.deploy)
}

// prepare builds, or finds, all programs.
func (d *demo) prepare(ctx context.Context, options *stack.Options) error {
	err := d.steps.Run(ctx, "find the control planes' programs", "", func(ctx context.Context) (err error) {
		options.Binaries, err = kube.FindBinaries(ctx, "", d.out)
		return err
	})
	if err != nil {
		return err
	}
	if d.options.programs != "" {
		return d.steps.Run(ctx, "find fleet-controller and fleet-agent", "", func(context.Context) (err error) {
			options.Programs, err = stack.FindPrograms(d.options.programs)
			return err
		})
	}
	return d.steps.Run(ctx, "build fleet-controller and fleet-agent", "", func(ctx context.Context) (err error) {
		options.Programs, err = stack.BuildPrograms(ctx, d.out)
		return err
	})
}

func (d *demo) serve(context.Context) error {
	dir := filepath.Join(d.stack.Dir(), "sources")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var err error
	d.sources, err = sources.Serve(dir, filepath.Join(d.root, "examples"))
	return err
}

// deploy makes the GitRepo and waits until every bundle is ready on every member.
func (d *demo) deploy(ctx context.Context) error {
	repo := &fleet.GitRepo{
		ObjectMeta: metav1.ObjectMeta{Namespace: stack.Workspace, Name: gitRepo},
		Spec: fleet.GitRepoSpec{
			Repo:            d.sources.Examples.HTTPURL(),
			Branch:          sources.Branch,
			Paths:           d.sources.Paths,
			PollingInterval: &fleet.Duration{Duration: pollingInterval},
			CorrectDrift:    &fleet.CorrectDrift{Enabled: true},
			Targets:         []fleet.ClusterTarget{{Name: "everywhere", ClusterSelector: &metav1.LabelSelector{}}},
		},
	}
	if err := d.stack.Client.Create(ctx, repo); err != nil {
		return fmt.Errorf("create GitRepo %s: %w", gitRepo, err)
	}
	return d.awaitReady(ctx, d.sources.Commit)
}

// awaitReady waits until a commit runs everywhere, and tells how far it is.
func (d *demo) awaitReady(ctx context.Context, commit string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	told := ""
	return stack.Await(ctx, fmt.Sprintf("commit %.8s runs on all members", commit), func(ctx context.Context) error {
		if err := d.stack.Err(); err != nil {
			return stack.Hopeless(err)
		}
		progress, err := d.stack.Progress(ctx, gitRepo)
		if err != nil {
			return err
		}
		if now := summary(progress, len(d.stack.Members)); now != told {
			told = now
			fmt.Fprintf(d.out, "    %s\n", now)
		}
		if missing := progress.Missing(commit, len(d.stack.Members)); missing != "" {
			return errors.New(missing)
		}
		return nil
	})
}

// stop ends everything that was started; only logs stay.
func (d *demo) stop() error {
	var failures []error
	if d.sources != nil {
		failures = append(failures, d.sources.Close())
	}
	if d.stack != nil {
		failures = append(failures, d.stack.Stop(), d.stack.RemoveData())
	}
	if err := os.Remove(d.home.stateFile()); !errors.Is(err, fs.ErrNotExist) {
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// shortcuts writes small programs that are kubectl for one cluster each, and returns their paths by
// cluster.
func (d *demo) shortcuts() (map[string]string, error) {
	clusters := map[string]*kube.Cluster{"hub": d.stack.Hub}
	for _, member := range d.stack.Members {
		clusters[member.Name] = member.Cluster
	}
	paths := map[string]string{}
	for name, cluster := range clusters {
		var script bytes.Buffer
		fmt.Fprintf(&script, "#!/bin/sh\nexec '%s' --kubeconfig '%s' \"$@\"\n", cluster.Binaries().Path(kube.Kubectl), cluster.Admin().Kubeconfig)
		path := filepath.Join(d.home.dir, "kubectl-"+name)
		if err := os.WriteFile(path, script.Bytes(), 0o755); err != nil {
			return nil, err
		}
		paths[name] = path
	}
	return paths, nil
}
