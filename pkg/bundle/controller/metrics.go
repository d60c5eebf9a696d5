package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/validation"
)

// Metrics of the bundle controller.
type Metrics struct {
	renders *prometheus.CounterVec
}

// NewMetrics returns metrics that are shown where registerer shows them.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	metrics := &Metrics{renders: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "fleet_validation_renders_total",
		Help: "Bundles rendered on the hub before they are sent, by result.",
	}, []string{"result"})}
	for _, result := range validation.Results() {
		metrics.renders.WithLabelValues(string(result)) // shown before the first
	}
	return metrics, registerer.Register(metrics.renders)
}

func (m *Metrics) rendered(result validation.Result) {
	m.renders.WithLabelValues(string(result)).Inc()
}
