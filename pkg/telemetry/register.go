package telemetry

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Register makes a metric known to a registry and returns it, or the one that an earlier part of this process
// registered under the same name. Without a registry the metric counts for nobody.
func Register[C prometheus.Collector](registry prometheus.Registerer, metric C) (C, error) {
	if registry == nil {
		return metric, nil
	}
	err := registry.Register(metric)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		if existing, same := known.ExistingCollector.(C); same {
			return existing, nil
		}
	}
	if err != nil {
		return metric, fmt.Errorf("register a metric: %w", err)
	}
	return metric, nil
}

// Counter registers a counter with labels.
func Counter(registry prometheus.Registerer, name, help string, labels ...string) (*prometheus.CounterVec, error) {
	return Register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
}
