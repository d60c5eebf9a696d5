package registrar

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/pkg/cluster/join"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// hubFacts tells what agents need to know of the hub, as the chart's ConfigMap says it now.
type hubFacts struct {
	reader   client.Reader
	key      types.NamespacedName
	fallback join.Hub
}

// hubConfig is the part of the ConfigMap's JSON that matters here.
type hubConfig struct {
	APIServerURL       string `json:"apiServerURL"`
	APIServerCA        []byte `json:"apiServerCA"`
	IgnoreAgentsLabels bool   `json:"ignoreClusterRegistrationLabels"`
}

// authority returns the certificate of the authority by which this process trusts the API server.
func authority(config *rest.Config) ([]byte, error) {
	if len(config.CAData) > 0 || config.CAFile == "" {
		return config.CAData, nil
	}
	ca, err := os.ReadFile(config.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the API server's authority: %w", err)
	}
	return ca, nil
}

func newHubFacts(config *rest.Config, reader client.Reader, systemNamespace string) (*hubFacts, error) {
	ca, err := authority(config)
	if err != nil {
		return nil, err
	}
	return &hubFacts{
		reader:   reader,
		key:      types.NamespacedName{Namespace: systemNamespace, Name: ConfigMap},
		fallback: join.Hub{SystemNamespace: systemNamespace, APIServerURL: config.Host, APIServerCA: ca},
	}, nil
}

// read returns where agents find the hub: as configured, else as this process finds it. A configured
// URL goes with the configured CA, even if that is empty: it may be another server's, trusted by its
// public certificate.
func (h *hubFacts) read(ctx context.Context) (join.Hub, hubConfig, error) {
	var stored corev1.ConfigMap
	var config hubConfig
	err := h.reader.Get(ctx, h.key, &stored)
	if apierrors.IsNotFound(err) {
		return h.fallback, config, nil
	}
	if err != nil {
		return join.Hub{}, config, fmt.Errorf("read ConfigMap %s: %w", h.key, err)
	}
	if text := stored.Data["config"]; text != "" {
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			return join.Hub{}, config, fault.New(fault.Stalled, "InvalidConfig", "ConfigMap %s, key config: %w", h.key, err)
		}
	}
	hub := h.fallback
	switch {
	case config.APIServerURL != "":
		hub.APIServerURL, hub.APIServerCA = config.APIServerURL, config.APIServerCA
	case len(config.APIServerCA) > 0:
		hub.APIServerCA = config.APIServerCA
	}
	return hub, config, nil
}
