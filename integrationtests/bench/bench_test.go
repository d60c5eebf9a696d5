package bench

import (
	"fmt"
	"os"
	"strings"
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
	if err := sheet.Publish(os.Stdout, size.json); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func readSettings(env report.Environment) (settings, error) {
	s := settings{json: env("BENCH_JSON"), runs: 7, bundles: 20, idle: time.Minute}
	if err := env.Numbers(map[string]*int{"BENCH_RUNS": &s.runs, "BENCH_BUNDLES": &s.bundles}); err != nil {
		return s, err
	}
	return s, env.Duration("BENCH_IDLE", &s.idle)
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

func TestReadSettings(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		want settings
		bad  string
	}{
		"nothing said": {want: settings{runs: 7, bundles: 20, idle: time.Minute}},
		"all said": {
			env:  map[string]string{"BENCH_JSON": "x.json", "BENCH_RUNS": "2", "BENCH_BUNDLES": "5", "BENCH_IDLE": "10m"},
			want: settings{json: "x.json", runs: 2, bundles: 5, idle: 10 * time.Minute},
		},
		"no number":     {env: map[string]string{"BENCH_RUNS": "many"}, bad: "BENCH_RUNS"},
		"none":          {env: map[string]string{"BENCH_BUNDLES": "0"}, bad: "BENCH_BUNDLES"},
		"no duration":   {env: map[string]string{"BENCH_IDLE": "10"}, bad: "BENCH_IDLE"},
		"backward time": {env: map[string]string{"BENCH_IDLE": "-1s"}, bad: "BENCH_IDLE"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readSettings(func(key string) string { return test.env[key] })
			if test.bad != "" {
				if err == nil || !strings.Contains(err.Error(), test.bad) {
					t.Errorf("got %v, want an error about %s", err, test.bad)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}
