package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
)

// serve starts the servers for metrics and probes that are asked for.
func serve(ctx context.Context, group *errgroup.Group, a *agent) {
	if isOn(a.settings.metricsAddress) {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		mux := http.NewServeMux()
		mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
		group.Go(func() error { return listen(ctx, a, a.settings.metricsAddress, "metrics", mux) })
	}
	if isOn(a.settings.healthAddress) {
		mux := http.NewServeMux()
		mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
		mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
			// A replica that stands by is ready, or a rollout would wait for the leader it has to replace.
			if a.unregistered.Load() {
				http.Error(w, "not registered yet", http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		})
		group.Go(func() error { return listen(ctx, a, a.settings.healthAddress, "probes", mux) })
	}
}

func isOn(address string) bool { return address != "" && address != "0" }

func listen(ctx context.Context, a *agent, address, what string, handler http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for %s: %w", what, err)
	}
	a.log.Info("listening", "for", what, "address", listener.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", what, err)
	}
	return nil
}
