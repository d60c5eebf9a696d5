package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/fairlead-dev/fairlead/pkg/telemetry"
)

// Metrics of the controllers of clusters; docs/metrics.md lists them.
type Metrics struct {
	renewed *prometheus.CounterVec
}

// NewMetrics returns metrics that are shown where registerer shows them.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	renewed, err := telemetry.Counter(registerer, "fleet_cluster_heartbeats_total",
		"Renewals of members' leases: noted, or news because the cluster's status is another one with them.", "result")
	return &Metrics{renewed: renewed}, err
}

// heard counts the renewal of a member's lease.
func (m *Metrics) heard(result string) {
	if m != nil {
		m.renewed.WithLabelValues(result).Inc()
	}
}
