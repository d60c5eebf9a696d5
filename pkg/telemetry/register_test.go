package telemetry

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestRegister(t *testing.T) {
	registry := prometheus.NewRegistry()
	first, err := Counter(registry, "fleet_x_total", "x", "kind")
	if err != nil {
		t.Fatal(err)
	}
	again, err := Counter(registry, "fleet_x_total", "x", "kind")
	if err != nil || again != first {
		t.Errorf("registered twice: %v", err)
	}
	if _, err := Counter(registry, "fleet_x_total", "x", "other"); err == nil {
		t.Error("the same name means two things")
	}
	if nobody, err := Counter(nil, "fleet_x_total", "x"); nobody == nil || err != nil {
		t.Errorf("without a registry: %v", err)
	}
}
