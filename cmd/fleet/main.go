// Command fleet is the command line of Fairlead: it shows what folders become on clusters, applies them,
// and says what runs where. All of it is in package cli.
package main

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/pkg/cli"
)

// untilCollection is how far the heap of a short command may grow, in hundredths of what is collected first by
// default, which is 4 MiB.
const untilCollection = 800

// startLazily lets memory be collected late for the first time, which most commands do not reach, and as usual
// from then on.
func startLazily() {
	before := debug.SetGCPercent(untilCollection)
	type sentinel struct{ _ *byte }
	runtime.AddCleanup(&sentinel{}, func(percent int) { debug.SetGCPercent(percent) }, before)
}

func main() {
	startLazily()
	// Libraries have nothing to tell people that the commands do not say themselves.
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	env := cli.EnvironmentFrom(os.Getenv)
	env.Proxy = http.ProxyFromEnvironment
	code := cli.Run(ctx, os.Args[1:], streams, env)
	stop()
	os.Exit(code)
}
