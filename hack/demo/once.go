package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/sources"
)

// The change that -once pushes, and what it changes on every member.
const (
	changedFile = "helm-chart/fleet.yaml"
	valueBefore = "replicas: 2"
	valueAfter  = "replicas: 3"
	replicas    = 3
)

var changedObject = client.ObjectKey{Namespace: "helm-chart", Name: "guestbook"}

// once pushes a change, waits until it runs everywhere, and shows how long each step took.
func (d *demo) once(ctx context.Context) error {
	progress, err := d.stack.Progress(ctx, gitRepo)
	if err != nil {
		return err
	}
	d.table(progress)
	var commit string
	var seen, changed time.Time
	logs := filepath.Join(d.stack.Dir(), "logs")
	for _, step := range []struct {
		name string
		body func(context.Context) error
	}{
		{"push a commit that changes a value", func(context.Context) (err error) {
			commit, err = d.change()
			return err
		}},
		{"tell the hub by a signed webhook", func(ctx context.Context) error {
			seen = time.Now()
			return d.stack.Announce(ctx, d.sources.Examples.HTTPURL(), sources.Branch, commit)
		}},
		{"the changed object is on every member", func(ctx context.Context) (err error) {
			err = d.awaitDeployments(ctx, func(found *appsv1.Deployment) bool { return *found.Spec.Replicas == replicas })
			changed = time.Now()
			return err
		}},
		{"the change runs on every member", func(ctx context.Context) error {
			return d.awaitDeployments(ctx, func(found *appsv1.Deployment) bool { return found.Status.ReadyReplicas == replicas })
		}},
		{"the hub says so", func(ctx context.Context) error { return d.awaitReady(ctx, commit) }},
	} {
		if err := d.steps.Run(ctx, step.name, logs, step.body); err != nil {
			return err
		}
	}
	d.report(changed.Sub(seen))
	return nil
}

// change pushes a commit.
func (d *demo) change() (string, error) {
	content, err := os.ReadFile(filepath.Join(d.root, "examples", filepath.FromSlash(changedFile)))
	if err != nil {
		return "", err
	}
	next := strings.Replace(string(content), valueBefore, valueAfter, 1)
	if next == string(content) {
		return "", fmt.Errorf("examples/%s holds no %q", changedFile, valueBefore)
	}
	return d.sources.Examples.Commit(map[string]string{changedFile: next}, "More replicas")
}

// awaitDeployments waits until the changed Deployment is as wanted on every member.
func (d *demo) awaitDeployments(ctx context.Context, wanted func(*appsv1.Deployment) bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for _, member := range d.stack.Members {
		err := stack.Await(ctx, fmt.Sprintf("Deployment %s is as wanted on %s", changedObject, member.Name), func(ctx context.Context) error {
			var found appsv1.Deployment
			if err := member.Client.Get(ctx, changedObject, &found); err != nil {
				return err
			}
			if !wanted(&found) {
				return fmt.Errorf("it has %d replicas, %d of them ready", *found.Spec.Replicas, found.Status.ReadyReplicas)
			}
			return d.stack.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) report(latency time.Duration) {
	fmt.Fprintln(d.out, "\nHow long it took")
	for _, step := range d.steps.Done() {
		fmt.Fprintf(d.out, "  %10s  %s\n", seconds(step.Took), step.Name)
	}
	fmt.Fprintf(d.out, "\nFrom the webhook to the changed objects on all %d members: %s\n", len(d.stack.Members), seconds(latency))
	fmt.Fprintln(d.out, "\nMemory")
	d.memory()
}
