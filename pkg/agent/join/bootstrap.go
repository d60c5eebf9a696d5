package join

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fairlead-dev/fairlead/pkg/agent/identity"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// Names of what the agent keeps in its namespace on the member, beside its credential (identity.Secret).
const (
	// BootstrapSecret holds what a registration needs; it is deleted when the agent has its identity.
	BootstrapSecret = "fleet-agent-bootstrap"
	// RegistrationSecret holds a registration that is under way.
	RegistrationSecret = "fleet-agent-registration"
	// ConfigMap holds what the hub or the chart tells the agent.
	ConfigMap = "fleet-agent"
)

// Modes of Settings.AgentTLSMode.
const (
	tlsStrict      = "strict"
	tlsSystemStore = "system-store"
)

// Settings are what the ConfigMap of the agent holds under the key config, as JSON.
type Settings struct {
	ClientID     string            `json:"clientID,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	APIServerURL string            `json:"apiServerURL,omitempty"`
	APIServerCA  []byte            `json:"apiServerCA,omitempty"`
	// AgentTLSMode is strict (only the given authority is trusted; the default) or system-store (the system's
	// are trusted too).
	AgentTLSMode string `json:"agentTLSMode,omitempty"`
	ClusterName  string `json:"clusterName,omitempty"`
	// GarbageCollectionInterval is how often releases without a deployment are looked for; 0 says nothing.
	GarbageCollectionInterval metav1.Duration `json:"garbageCollectionInterval,omitzero"`
}

// bootstrap is what a registration needs.
type bootstrap struct {
	url              string
	ca               []byte
	token, tokenName string
	// workspace is the namespace on the hub that the registration is made in.
	workspace string
	// trustSystem as identity.Credential has it.
	trustSystem bool
}

// ReadSettings returns what the agent's ConfigMap says, nothing when there is none.
func ReadSettings(ctx context.Context, member kubernetes.Interface, namespace string) (Settings, error) {
	var settings Settings
	object, err := member.CoreV1().ConfigMaps(namespace).Get(ctx, ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return settings, nil
	}
	if err != nil {
		return settings, fmt.Errorf("get config map %s/%s: %w", namespace, ConfigMap, err)
	}
	text := object.Data["config"]
	if text == "" {
		return settings, nil
	}
	if err := json.Unmarshal([]byte(text), &settings); err != nil {
		return settings, fault.New(fault.Stalled, "InvalidConfig", "config map %s/%s: key config: %w", namespace, ConfigMap, err)
	}
	return settings, nil
}

// trustsSystem says whether the system's authorities count beside the one that is given.
func (s Settings) trustsSystem() (bool, error) {
	switch s.AgentTLSMode {
	case "", tlsStrict:
		return false, nil
	case tlsSystemStore:
		return true, nil
	}
	return false, fault.New(fault.Stalled, "InvalidConfig", "config map %s: agentTLSMode %q is neither %s nor %s", ConfigMap, s.AgentTLSMode, tlsStrict, tlsSystemStore)
}

// readBootstrap returns nil when there is nothing to register with.
func readBootstrap(ctx context.Context, member kubernetes.Interface, namespace string, settings Settings) (*bootstrap, error) {
	secret, err := member.CoreV1().Secrets(namespace).Get(ctx, BootstrapSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get secret %s/%s: %w", namespace, BootstrapSecret, err)
	}
	data := secret.Data
	boot := &bootstrap{
		url: string(data["apiServerURL"]), ca: data["apiServerCA"],
		token: string(data["token"]), tokenName: string(data["tokenName"]),
		workspace: string(data["clusterNamespace"]),
	}
	if boot.url == "" {
		boot.url = settings.APIServerURL
	}
	if len(boot.ca) == 0 {
		boot.ca = settings.APIServerCA
	}
	if decoded, err := base64.StdEncoding.DecodeString(string(boot.ca)); err == nil && len(decoded) > 0 {
		boot.ca = decoded
	}
	if boot.trustSystem, err = settings.trustsSystem(); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"apiServerURL": boot.url, "token": boot.token, "clusterNamespace": boot.workspace,
	} {
		if value == "" {
			return nil, fault.New(fault.Stalled, "InvalidBootstrap", "secret %s/%s has no %s", namespace, BootstrapSecret, name)
		}
	}
	return boot, nil
}

func (b *bootstrap) config(userAgent string) (*rest.Config, error) {
	return identity.WithToken(b.url, b.ca, b.token, b.trustSystem, userAgent)
}

// digest changes when the bootstrap does; a registration under way with another one is given up.
func (b *bootstrap) digest() string {
	return names.ObjectSetHash(b.url + "\x00" + b.workspace + "\x00" + b.token)
}
