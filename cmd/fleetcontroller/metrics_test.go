package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	bundlecontroller "github.com/fairlead-dev/fairlead/pkg/bundle/controller"
	clustercontroller "github.com/fairlead-dev/fairlead/pkg/cluster/controller"
	"github.com/fairlead-dev/fairlead/pkg/shard"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
	"github.com/fairlead-dev/fairlead/pkg/status/gauges"
)

// descriptions are the labels of metrics, by name, as they are registered.
type descriptions map[string][]string

var described = regexp.MustCompile(`^Desc\{fqName: "([a-z_]+)", .*variableLabels: \{([a-z_,]*)\}\}$`)

// Register notes what a collector describes.
func (d descriptions) Register(collector prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		collector.Describe(descs)
	}()
	for desc := range descs {
		match := described.FindStringSubmatch(desc.String())
		if match == nil {
			return fmt.Errorf("%s cannot be read", desc)
		}
		d[match[1]] = strings.FieldsFunc(match[2], func(r rune) bool { return r == ',' })
	}
	return nil
}

// MustRegister is Register.
func (d descriptions) MustRegister(collectors ...prometheus.Collector) {
	for _, collector := range collectors {
		if err := d.Register(collector); err != nil {
			panic(err)
		}
	}
}

// Unregister is for nobody.
func (d descriptions) Unregister(prometheus.Collector) bool { return false }

// ownMetrics are those of the hub itself.
func ownMetrics(t *testing.T) descriptions {
	t.Helper()
	own := descriptions{}
	if _, err := feed.New(nil, own, time.Now); err != nil {
		t.Fatal(err)
	}
	if _, err := bundlecontroller.NewMetrics(own); err != nil {
		t.Fatal(err)
	}
	if _, err := clustercontroller.NewMetrics(own); err != nil {
		t.Fatal(err)
	}
	own.MustRegister(shard.NewCollector(nil), gauges.New(nil))
	return own
}

// documentedMetrics are those of docs/metrics.md: in each row of a table names, then labels, each before a colon where
// its values are listed.
func documentedMetrics(t *testing.T) descriptions {
	t.Helper()
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([a-z_]+)`")
	all := descriptions{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.HasPrefix(line, "| `") {
			continue
		}
		var labels []string
		for _, part := range strings.Split(cells[2], ";") {
			names, _, _ := strings.Cut(part, ":")
			for _, match := range quoted.FindAllStringSubmatch(names, -1) {
				labels = append(labels, match[1])
			}
		}
		for _, match := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if _, twice := all[match[1]]; twice {
				t.Errorf("docs/metrics.md lists %s twice", match[1])
			}
			all[match[1]] = labels
		}
	}
	return all
}

// Every metric that is registered is in docs/metrics.md with its labels, and the reverse.
func TestMetricsAreDocumented(t *testing.T) {
	own, documented := ownMetrics(t), documentedMetrics(t)
	if len(own) < 50 {
		t.Errorf("only %d metrics are registered", len(own))
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		labels, known := documented[name]
		if !known {
			t.Errorf("docs/metrics.md lacks %s", name)
		} else if !sameLabels(labels, own[name]) {
			t.Errorf("docs/metrics.md gives %s the labels %v, it has %v", name, labels, own[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if _, known := own[name]; !known {
			t.Errorf("docs/metrics.md lists %s, which nobody registers", name)
		}
	}
}

func sameLabels(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Every name of a metric in the code is registered where this test looks.
func TestMetricsAreKnown(t *testing.T) {
	own, named := ownMetrics(t), regexp.MustCompile(`"(fleet_[a-z_]*)"`)
	seen := 0
	for _, root := range []string{"../../pkg", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, match := range named.FindAllStringSubmatch(string(text), -1) {
				seen++
				// A name that ends with _ starts those of a family.
				_, known := own[match[1]]
				if !known && (!strings.HasSuffix(match[1], "_") || !startsAny(own, match[1])) {
					t.Errorf("%s: nobody registers %s", path, match[1])
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 10 {
		t.Errorf("found only %d names", seen)
	}
}

func startsAny(own descriptions, prefix string) bool {
	for name := range own {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// exists says that the registry of the libraries has a metric of that name: it refuses another one.
func exists(name string) bool {
	probe := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: "probe"}, []string{"probe"})
	if err := ctrlmetrics.Registry.Register(probe); err != nil {
		return true
	}
	ctrlmetrics.Registry.Unregister(probe)
	return false
}

// What the dashboard asks for exists: metrics, and the labels of ours.
func TestDashboardAsksForWhatExists(t *testing.T) {
	text, err := os.ReadFile("../../charts/fleet/dashboards/hub.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	own, queries := ownMetrics(t), queriesOf(dashboard)
	if len(queries) < 15 {
		t.Errorf("only %d queries", len(queries))
	}
	metric := regexp.MustCompile(`\b[a-z]+_[a-z_]+\b`)
	labels := regexp.MustCompile(`(?:by \(([^)]*)\)|([a-z_]+)(?:=~|!~|!=|=)"|label_values\([a-z_]+, ([a-z_]+)\))`)
	for _, query := range queries {
		// Those that whoever scrapes adds.
		allowed := []string{"job", "pod", "instance"}
		ours := false
		for _, name := range metric.FindAllString(strings.ReplaceAll(query, "label_values", ""), -1) {
			if has, known := own[name]; known {
				ours, allowed = true, append(allowed, has...)
			} else if !exists(name) {
				t.Errorf("%q asks for %s, which nobody registers", query, name)
			}
		}
		if !ours {
			continue
		}
		for _, match := range labels.FindAllStringSubmatch(query, -1) {
			for _, label := range strings.FieldsFunc(match[1]+match[2]+match[3], func(r rune) bool { return r == ',' || r == ' ' }) {
				if !slices.Contains(allowed, label) {
					t.Errorf("%q asks for the label %s, which it does not have", query, label)
				}
			}
		}
	}
}

// queriesOf lists what the panels and variables of a dashboard ask for.
func queriesOf(tree any) []string {
	var found []string
	switch tree := tree.(type) {
	case map[string]any:
		for key, value := range tree {
			if text, is := value.(string); is && (key == "expr" || key == "definition") {
				found = append(found, text)
			}
			found = append(found, queriesOf(value)...)
		}
	case []any:
		for _, value := range tree {
			found = append(found, queriesOf(value)...)
		}
	}
	return found
}
