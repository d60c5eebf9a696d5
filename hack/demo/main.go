// Command demo runs Fairlead on this machine: a hub and three members as real control planes, the charts,
// the programs, and a git repository made from examples/, all on 127.0.0.1. See `make demo`.
//
//	go run ./hack/demo          stays up until Ctrl-C
//	go run ./hack/demo -once    pushes one change, prints how long it took, stops
//	go run ./hack/demo -down    stops a demo that runs
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/integrationtests/stack"
)

// exitInterrupted is what shells report of a program that Ctrl-C ended.
const exitInterrupted = 130

func main() {
	var o options
	flag.BoolVar(&o.once, "once", false, "push one change, wait until it runs everywhere, stop")
	flag.StringVar(&o.programs, "programs", "", "folder with fleet-controller and fleet-agent; they are built when it is empty")
	down := flag.Bool("down", false, "stop a demo that runs")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	// After the first Ctrl-C a second one ends the program at once, and with it what it started.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(exit(ctx, o, *down, os.Stdout))
}

func exit(ctx context.Context, o options, down bool, out io.Writer) int {
	err := dispatch(ctx, o, down, out)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(out, "interrupted; everything is stopped")
		return exitInterrupted
	}
	fmt.Fprintf(out, "\nFAILED: %v\n", err)
	return 1
}

func dispatch(ctx context.Context, o options, down bool, out io.Writer) error {
	root, err := stack.ModuleRoot()
	if err != nil {
		return err
	}
	home := home{filepath.Join(root, ".demo")}
	if down {
		return home.down(ctx, out)
	}
	release, err := home.lock()
	if err != nil {
		return err
	}
	defer release()
	return (&demo{options: o, root: root, home: home, out: out}).run(ctx)
}
