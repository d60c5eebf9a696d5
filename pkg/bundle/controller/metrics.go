package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-dev/fairlead/pkg/bundle/judge"
	"github.com/fairlead-dev/fairlead/pkg/telemetry"
)

// Metrics of the bundle controller; docs/metrics.md lists them.
type Metrics struct {
	renders, evaluations, writes *prometheus.CounterVec
}

// NewMetrics returns metrics that are shown where registerer shows them.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	metrics := &Metrics{}
	for _, counter := range []struct {
		to                **prometheus.CounterVec
		name, help, label string
	}{
		{&metrics.renders, "fleet_validation_renders_total", "Bundles rendered on the hub before they are sent, by result.", "result"},
		{&metrics.evaluations, "fleet_target_evaluations_total",
			"Clusters that plans of bundles asked about: evaluated, or cached because nothing that counts had changed.", "result"},
		{&metrics.writes, "fleet_bundledeployment_writes_total", "BundleDeployments that were created, patched and deleted.", "verb"},
	} {
		made, err := telemetry.Counter(registerer, counter.name, counter.help, counter.label)
		if err != nil {
			return nil, err
		}
		*counter.to = made
	}
	for _, result := range judge.Results() {
		metrics.renders.WithLabelValues(string(result)) // shown before the first
	}
	return metrics, nil
}

func (m *Metrics) rendered(result judge.Result) {
	m.renders.WithLabelValues(string(result)).Inc()
}

// planned counts the clusters of one plan.
func (m *Metrics) planned(evaluated, cached int) {
	m.evaluations.WithLabelValues("evaluated").Add(float64(evaluated))
	m.evaluations.WithLabelValues("cached").Add(float64(cached))
}

// wrote counts a deployment that was written.
func (m *Metrics) wrote(verb string) { m.writes.WithLabelValues(verb).Inc() }
