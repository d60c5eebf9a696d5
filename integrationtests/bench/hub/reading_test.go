package hub

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// reading is what API server and controller have counted at a time.
type reading struct {
	// writes since the start of the API server.
	writes writes.Requests
	// latency of requests that are no watches.
	latency histogram
	// watches that are open, and bytes of etcd's file.
	watches, storage float64
	// reconciles and evaluations of the controller, by controller and by result.
	reconciles, evaluations map[string]float64
	processor               time.Duration
	memory                  map[string]stack.Memory
}

// histogram counts requests by the longest time they may have taken.
type histogram map[float64]float64

// since subtracts an earlier count.
func (h histogram) since(before histogram) histogram {
	added := histogram{}
	for bound, count := range h {
		added[bound] = count - before[bound]
	}
	return added
}

// quantile returns the time within which a share of the requests was answered, in seconds, as Prometheus
// estimates it.
func (h histogram) quantile(share float64) float64 {
	bounds := slices.Sorted(maps.Keys(h))
	if len(bounds) == 0 {
		return 0
	}
	wanted := share * h[bounds[len(bounds)-1]]
	below, under := 0.0, 0.0
	for _, bound := range bounds {
		if count := h[bound]; count >= wanted && count > under {
			if math.IsInf(bound, 1) {
				return below
			}
			return below + (bound-below)*(wanted-under)/(count-under)
		}
		below, under = bound, h[bound]
	}
	return 0
}

// families reads the named families out of metrics.
func families(metrics io.Reader, names ...string) (map[string]*dto.MetricFamily, error) {
	var kept bytes.Buffer
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		text := strings.TrimPrefix(line, "# TYPE ")
		for _, name := range names {
			if rest, ok := strings.CutPrefix(text, name); ok && !strings.HasPrefix(line, "# HELP") && strings.ContainsAny(rest[:1], " {_") {
				kept.WriteString(line + "\n")
				break
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(&kept)
}

const (
	durations   = "apiserver_request_duration_seconds"
	longRunning = "apiserver_longrunning_requests"
	storageSize = "apiserver_storage_size_bytes"
	reconciles  = "controller_runtime_reconcile_total"
	evaluations = "fleet_target_evaluations_total"
)

// server reads families of the API server's metrics.
func (r *run) server(names ...string) map[string]*dto.MetricFamily {
	r.t.Helper()
	stream, err := r.stack.Hub.Clients().Discovery().RESTClient().Get().AbsPath("/metrics").Stream(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	defer stream.Close()
	found, err := families(stream, names...)
	if err != nil {
		r.t.Fatal(err)
	}
	return found
}

// awaitCollector waits until the garbage collector watches our deployments and those of the floor. It looks for new
// kinds every half minute and lists all there is of them, which would fall into one phase or another by chance.
func (r *run) awaitCollector() {
	r.t.Helper()
	r.awaitSlowly("the garbage collector watches both kinds", time.Second, func(context.Context) error {
		watched := map[string]float64{}
		for _, metric := range r.server(longRunning)[longRunning].GetMetric() {
			if labelOf(metric, "verb") == "WATCH" && labelOf(metric, "resource") == plural {
				watched[labelOf(metric, "group")] += metric.GetGauge().GetValue()
			}
		}
		// Ours is watched by the hub and by the agents, too.
		if watched[floorGroup] < 1 || watched[fleet.GroupVersion.Group] < 3 {
			return fmt.Errorf("watches: %v", watched)
		}
		return nil
	})
}

// read takes a reading.
func (r *run) read() reading {
	r.t.Helper()
	now := reading{latency: histogram{}, memory: map[string]stack.Memory{}}
	var err error
	if now.writes, err = r.stack.Hub.MutatingRequests(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	server := r.server(durations, longRunning, storageSize)
	for _, metric := range server[durations].GetMetric() {
		if verb := labelOf(metric, "verb"); verb == "WATCH" || verb == "CONNECT" || labelOf(metric, "group") != "fleet.cattle.io" {
			continue
		}
		for _, bucket := range metric.GetHistogram().GetBucket() {
			now.latency[bucket.GetUpperBound()] += float64(bucket.GetCumulativeCount())
		}
	}
	for _, metric := range server[longRunning].GetMetric() {
		if labelOf(metric, "verb") == "WATCH" {
			now.watches += metric.GetGauge().GetValue()
		}
	}
	for _, metric := range server[storageSize].GetMetric() {
		now.storage += metric.GetGauge().GetValue()
	}
	r.readController(&now)
	return now
}

func (r *run) readController(now *reading) {
	r.t.Helper()
	response, err := http.Get("http://" + r.stack.Controller.Metrics + "/metrics")
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	own, err := families(response.Body, reconciles, evaluations)
	if err != nil {
		r.t.Fatal(err)
	}
	now.reconciles, now.evaluations = sumBy(own[reconciles], "controller"), sumBy(own[evaluations], "result")
	if now.processor, err = r.stack.Controller.ProcessorTime(); err != nil {
		r.t.Fatal(err)
	}
	for name, pid := range r.stack.Processes() {
		if now.memory[name], err = stack.MemoryOf(pid); err != nil {
			r.t.Fatal(err)
		}
	}
}

func labelOf(metric *dto.Metric, name string) string {
	for _, label := range metric.GetLabel() {
		if label.GetName() == name {
			return label.GetValue()
		}
	}
	return ""
}

func sumBy(family *dto.MetricFamily, label string) map[string]float64 {
	sums := map[string]float64{}
	for _, metric := range family.GetMetric() {
		sums[labelOf(metric, label)] += metric.GetCounter().GetValue()
	}
	return sums
}

// unknownOutcome marks writes that the API server gave up on.
const unknownOutcome = " (given up)"

// byResource sums writes, as "patch bundles/status"; those that were not carried out, or perhaps not, by themselves.
func byResource(requests writes.Requests) map[string]int {
	sums := map[string]int{}
	for request, count := range requests.Only(writes.Stored) {
		name := request.Verb + " " + request.Resource
		if request.Subresource != "" {
			name += "/" + request.Subresource
		}
		switch {
		case writes.OutcomeUnknown(request):
			name += unknownOutcome
		case writes.Refused(request):
			name += fmt.Sprintf(" (refused, %d)", request.Code)
		}
		sums[name] += count
	}
	return sums
}
