package agent

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fairlead-dev/fairlead/integrationtests/bench/report"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/pair"
)

const (
	// patience is how long anything may take before it is taken for broken.
	patience = 5 * time.Minute
	// What the agent may hold, in MB: with a few bundles, whatever else is on the member, and with many.
	memoryLimit     = 120.0
	manyMemoryLimit = 300.0
)

var (
	clusters = kubetest.Share(kubetest.Options{Members: 1})
	sheet    report.Sheet
	size     settings
)

// settings say how much to measure.
type settings struct {
	// json is a file for the figures; none is written when it is empty.
	json string
	// rounds is how often everything is created, changed, corrected and deleted; secrets how many are on
	// the member that nobody asks for; bundles how many the largest agent has.
	rounds, secrets, bundles int
	idle                     time.Duration
}

func TestMain(m *testing.M) {
	var err error
	if size, err = readSettings(os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := clusters.Run(m)
	if err := sheet.Publish(os.Stdout, size.json); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func readSettings(env report.Environment) (settings, error) {
	s := settings{json: env("BENCH_AGENT_JSON"), rounds: 7, secrets: 20000, bundles: 500, idle: time.Minute}
	numbers := map[string]*int{"BENCH_RUNS": &s.rounds, "BENCH_SECRETS": &s.secrets, "BENCH_MANY": &s.bundles}
	if err := env.Numbers(numbers); err != nil {
		return s, err
	}
	return s, env.Duration("BENCH_IDLE", &s.idle)
}

func start(t testing.TB) *pair.Pair {
	t.Helper()
	all := clusters.Get(t)
	return pair.Start(t, all.Hub, all.Members[0])
}

// The benchmarks run in this order, each with an agent of its own on the same two clusters.

func BenchmarkRounds(b *testing.B) {
	for b.Loop() {
		measureRounds(b)
	}
}

func BenchmarkManyBundles(b *testing.B) {
	for b.Loop() {
		measureMany(b)
	}
}

func BenchmarkUnrelatedSecrets(b *testing.B) {
	for b.Loop() {
		measureSecrets(b)
	}
}

func addMemory(b *testing.B, p *pair.Pair, when string, limit float64) float64 {
	b.Helper()
	memory, err := p.Agent.Memory()
	if err != nil {
		b.Fatal(err)
	}
	const chapter = "agent: resident memory"
	resident := float64(memory.Resident) / 1e6
	sheet.Add(
		report.Figure{Chapter: chapter, Name: when, Value: resident, Unit: report.Megabytes, Limit: &limit},
		report.Figure{Chapter: chapter, Name: when + ", peak so far", Value: float64(memory.Peak) / 1e6, Unit: report.Megabytes, Limit: &limit},
	)
	return resident
}

// each calls a function for all numbers below n, so many at a time, and fails the test on an error.
func each(t testing.TB, n, atOnce int, do func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// pause lets time pass that is what is measured.
func pause(t testing.TB, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}
