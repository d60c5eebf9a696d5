package bench

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/integrationtests/bench/report"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/stacktest"
)

// settings say how much to measure.
type settings struct {
	// json is a file for the figures; none is written when it is empty.
	json string
	// runs is how often a push is repeated, bundles how many a fan-out has, idle how long an idle fleet is
	// watched.
	runs, bundles int
	idle          time.Duration
}

var (
	shared = stacktest.Share(stack.Options{})
	sheet  report.Sheet
	size   settings
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	var err error
	if size, err = readSettings(os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := shared.Run(m)
	if err := theWorld.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	if err := publish(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func readSettings(env func(string) string) (settings, error) {
	s := settings{json: env("BENCH_JSON"), runs: 7, bundles: 20, idle: time.Minute}
	for name, value := range map[string]*int{"BENCH_RUNS": &s.runs, "BENCH_BUNDLES": &s.bundles} {
		text := env(name)
		if text == "" {
			continue
		}
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 {
			return s, fmt.Errorf("%s=%q: want a number above zero", name, text)
		}
		*value = number
	}
	if text := env("BENCH_IDLE"); text != "" {
		idle, err := time.ParseDuration(text)
		if err != nil || idle <= 0 {
			return s, fmt.Errorf("BENCH_IDLE=%q: want a duration such as 10m", text)
		}
		s.idle = idle
	}
	return s, nil
}

// publish shows the figures when there are any.
func publish(out io.Writer) error {
	if len(sheet.Figures()) == 0 {
		return nil
	}
	sheet.Machine = report.Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), MemoryBytes: machineMemory(), Go: runtime.Version(),
	}
	fmt.Fprintln(out)
	if err := sheet.WriteTable(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if size.json == "" {
		return nil
	}
	file, err := os.Create(size.json)
	if err != nil {
		return err
	}
	if err := sheet.WriteJSON(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// The benchmarks run in this order on one fleet, so that each finds it as the ones before left it: a fleet
// that deploys nothing, then one that has worked.

func BenchmarkJoined(b *testing.B) {
	w := getWorld(b)
	for b.Loop() {
		w.settle(b)
		w.addMemory(b, "joined, nothing deployed")
	}
}

func BenchmarkFanOut(b *testing.B) {
	w := getWorld(b)
	for b.Loop() {
		result := w.fanOut(b, size.bundles)
		result.add(b)
		w.addMemory(b, "after the fan-out")
	}
}

func BenchmarkPush(b *testing.B) {
	w := getWorld(b)
	changes := []*change{w.exampleChange(b), w.generatedChange(b)}
	for _, by := range []trigger{webhook, poll} {
		for _, c := range changes {
			b.Run(string(by)+"/"+c.name, func(b *testing.B) {
				for b.Loop() {
					w.measure(b, c, by, size.runs)
				}
			})
		}
	}
	w.addMemory(b, "after the pushes")
}

func BenchmarkIdle(b *testing.B) {
	w := getWorld(b)
	w.exampleChange(b)
	w.generatedChange(b)
	for b.Loop() {
		w.watchIdle(b, size.idle)
	}
}

func BenchmarkApply(b *testing.B) {
	for b.Loop() {
		measureApply(b, 200, size.runs)
	}
}
