package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/bench/report"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
)

// agentIdleLimit is a hundredth of a core, in seconds each minute.
const agentIdleLimit = 0.6

// watchIdle lets a fleet that is ready alone and adds what it writes and takes meanwhile.
func (w *world) watchIdle(b *testing.B, window time.Duration) {
	b.Helper()
	w.await(b, "files that nobody needs are gone", w.Tidy) // what was before the window does not belong into it
	w.settle(b)
	before := w.writesByCluster(b)
	counted := w.countedByCluster(b)
	used := w.processorTime(b)
	began := time.Now()
	select {
	case <-time.After(window):
	case <-b.Context().Done():
	}
	minutes := time.Since(began).Minutes()
	after, countedAfter, usedAfter := w.writesByCluster(b), w.countedByCluster(b), w.processorTime(b)

	chapter := fmt.Sprintf("writes of an idle fleet in %.0f s", window.Seconds())
	written := 0
	for i, cluster := range w.clusters() {
		news := after[i][len(before[i]):]
		addIdleWrites(chapter, cluster.Name(), news)
		// The API server's own count has the control plane's writes too.
		all := countedAfter[i].Since(counted[i]).Only(writes.Stored)
		addCounted(chapter, cluster.Name(), all)
		for _, write := range news {
			if writer(write) != "" && writes.NotLeases(write.Request) {
				written++
				b.Errorf("%s: %s", cluster.Name(), write)
			}
		}
	}
	const processor = "processor time of an idle fleet"
	for i, program := range w.programs() {
		seconds := usedAfter[program.Name()] - used[program.Name()]
		figure := report.Figure{Chapter: processor, Name: program.Name() + ", each minute", Value: seconds.Seconds() / minutes, Unit: report.Seconds}
		if i > 0 {
			figure.Limit = new(agentIdleLimit)
		}
		sheet.Add(figure)
	}
	w.addMemory(b, "idle with all deployed")
	b.ReportMetric(float64(written), "writes")
}

// addIdleWrites adds how often our programs wrote leases, and anything else.
func addIdleWrites(chapter, cluster string, news []writes.Write) {
	leases, others := 0, 0
	for _, write := range news {
		switch {
		case writer(write) == "":
		case writes.NotLeases(write.Request):
			others++
		default:
			leases++
		}
	}
	sheet.Add(
		report.Figure{Chapter: chapter, Name: cluster + ": ours, leases", Value: float64(leases)},
		report.Figure{Chapter: chapter, Name: cluster + ": ours, anything else", Value: float64(others), Floor: new(0.0), Limit: new(0.0)},
	)
}

// addCounted adds all writes of a cluster by resource, by the API server's own count.
func addCounted(chapter, cluster string, counted writes.Requests) {
	byResource := map[string]int{}
	for request, count := range counted {
		byResource[strings.TrimSuffix(request.Resource+"/"+request.Subresource, "/")] += count
	}
	var resources []string
	for resource := range byResource {
		resources = append(resources, resource)
	}
	slices.Sort(resources)
	for _, resource := range resources {
		sheet.Add(report.Figure{Chapter: chapter, Name: cluster + ": everybody's, " + resource, Value: float64(byResource[resource])})
	}
}

func (w *world) writesByCluster(t testing.TB) [][]writes.Write {
	t.Helper()
	var all [][]writes.Write
	for _, cluster := range w.clusters() {
		list, err := cluster.Writes()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list)
	}
	return all
}

func (w *world) countedByCluster(t testing.TB) []writes.Requests {
	t.Helper()
	var all []writes.Requests
	for _, cluster := range w.clusters() {
		requests, err := cluster.MutatingRequests(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, requests)
	}
	return all
}
