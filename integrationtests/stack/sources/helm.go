package sources

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/repo"
)

// HelmRepo is a Helm repository over HTTP.
type HelmRepo struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}
}

// ServeCharts packages the charts in folders into dir and serves it as a Helm repository.
func ServeCharts(dir string, chartDirs ...string) (*HelmRepo, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a Helm repository: %w", err)
	}
	for _, chartDir := range chartDirs {
		chart, err := loader.LoadDir(chartDir)
		if err != nil {
			return nil, fmt.Errorf("load chart %s: %w", chartDir, err)
		}
		if _, err := chartutil.Save(chart, dir); err != nil {
			return nil, fmt.Errorf("package chart %s: %w", chartDir, err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve a Helm repository: %w", err)
	}
	h := &HelmRepo{
		listener: listener,
		server:   &http.Server{Handler: http.FileServer(http.Dir(dir)), ReadHeaderTimeout: 10 * time.Second},
		done:     make(chan struct{}),
	}
	index, err := repo.IndexDirectory(dir, h.URL())
	if err == nil {
		index.SortEntries()
		err = index.WriteFile(filepath.Join(dir, "index.yaml"), 0o644)
	}
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("index a Helm repository: %w", err)
	}
	go func() {
		defer close(h.done)
		_ = h.server.Serve(listener) // ends by Close
	}()
	return h, nil
}

// URL returns the repository's address, without a slash at its end.
func (h *HelmRepo) URL() string { return "http://" + h.listener.Addr().String() }

// Close stops serving.
func (h *HelmRepo) Close() error {
	err := h.server.Close()
	<-h.done
	return err
}
