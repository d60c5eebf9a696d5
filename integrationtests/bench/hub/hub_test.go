package hub

import (
	"errors"
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
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// settings say how large the fleet is.
type settings struct {
	// json is a file for the figures; none is written when it is empty.
	json string
	// clusters and bundles: every bundle goes to every cluster.
	clusters, bundles int
	// idle is how long the idle fleet is watched.
	idle time.Duration
	// without are phases that are left out, separated by commas.
	without string
	// merge is how bundles are delivered; every five make a repository.
	merge string
	// profiles is an address where the controller serves profiles meanwhile.
	profiles string
}

var (
	shared *stacktest.Shared
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
	// One controller that keeps its lease however busy the machine is.
	options := stack.Options{Members: []stack.MemberOptions{}, ControllerArgs: []string{
		"--leader-elect=false", "--keep-unused-contents=5s", // what a phase leaves behind is gone before the next one
	}}
	if size.profiles != "" {
		options.ControllerArgs = append(options.ControllerArgs, "--pprof-bind-address="+size.profiles)
	}
	shared = stacktest.Share(options)
	code := shared.Run(m)
	if err := sheet.Publish(os.Stdout, size.json); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func readSettings(env func(string) string) (settings, error) {
	s := settings{json: env("BENCH_JSON"), clusters: 200, bundles: 20, idle: time.Minute, profiles: env("BENCH_PROFILES"), without: env("BENCH_WITHOUT"), merge: env("MERGE")}
	given := report.Environment(env)
	if err := errors.Join(given.Numbers(map[string]*int{"CLUSTERS": &s.clusters, "BUNDLES": &s.bundles}), given.Duration("BENCH_IDLE", &s.idle)); err != nil {
		return s, err
	}
	if s.clusters < 2*ringSize {
		return s, fmt.Errorf("CLUSTERS=%d: want %d at least", s.clusters, 2*ringSize)
	}
	if s.merge != "" && s.merge != string(fleet.MergePerRepo) {
		return s, fmt.Errorf("MERGE=%s: want %s or nothing", s.merge, fleet.MergePerRepo)
	}
	return s, nil
}

// BenchmarkHub goes through the life of a fleet once.
func BenchmarkHub(b *testing.B) {
	for b.Loop() {
		newRun(b, size).all()
	}
	b.ReportMetric(0, "ns/op")
}

// A fleet of 200 clusters costs the writes it must: one for each pair, and none but leases for a minute in
// which nothing happens, while some bundles fail for good.
func TestHub(t *testing.T) {
	small := size
	small.bundles = min(size.bundles, 3)
	newRun(t, small).essentials()
}

func TestReadSettings(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		want settings
		bad  string
	}{
		"nothing said": {want: settings{clusters: 200, bundles: 20, idle: time.Minute}},
		"all said": {
			env:  map[string]string{"BENCH_JSON": "x.json", "CLUSTERS": "1000", "BUNDLES": "50", "BENCH_IDLE": "10m", "BENCH_PROFILES": "127.0.0.1:6060", "BENCH_WITHOUT": "delete"},
			want: settings{json: "x.json", without: "delete", clusters: 1000, bundles: 50, idle: 10 * time.Minute, profiles: "127.0.0.1:6060"},
		},
		"merged":      {env: map[string]string{"MERGE": "PerRepo"}, want: settings{clusters: 200, bundles: 20, idle: time.Minute, merge: "PerRepo"}},
		"badly so":    {env: map[string]string{"MERGE": "yes"}, bad: "MERGE"},
		"no number":   {env: map[string]string{"CLUSTERS": "many"}, bad: "CLUSTERS"},
		"too few":     {env: map[string]string{"CLUSTERS": "3"}, bad: "CLUSTERS"},
		"none":        {env: map[string]string{"BUNDLES": "0"}, bad: "BUNDLES"},
		"no duration": {env: map[string]string{"BENCH_IDLE": "10"}, bad: "BENCH_IDLE"},
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
