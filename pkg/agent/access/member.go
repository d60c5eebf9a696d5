package access

import (
	"context"
	"fmt"
	"sync"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/synced"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// defaultServiceAccount is used, when it exists, by bundles that name no service account.
const defaultServiceAccount = "fleet-default"

// Member is the agent's connection to its own cluster.
type Member struct {
	config    *rest.Config
	dynamic   dynamic.Interface // as the agent
	namespace string
	mapper    meta.RESTMapper
	memory    *synced.Memory

	mu           sync.Mutex
	accounts     map[string]account
	identities   map[string]*Identity
	capabilities *chartutil.Capabilities
	askedKinds   time.Time // when capabilities were asked for
}

// account is what was last heard of a service account.
type account struct {
	exists bool
	asked  time.Time
}

// accountLife is how long an answer about a service account holds: every look at a bundle needs one.
const accountLife = 10 * time.Second

// Identity is the clients of one service account, or of the agent itself. Everything a bundle reads and
// writes goes through its identity.
type Identity struct {
	Writer  *apply.Writer
	Clients kubernetes.Interface
	Dynamic dynamic.Interface
	// Name is the service account; "" for the agent itself.
	Name string

	config *rest.Config
	member *Member
}

// NewMember returns a connection; namespace is the agent's own, in which service accounts are looked up.
func NewMember(config *rest.Config, namespace string, memory *synced.Memory) (*Member, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the member: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect to the member: %w", err)
	}
	agent, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the member: %w", err)
	}
	return &Member{
		config: config, dynamic: agent, namespace: namespace, mapper: mapper, memory: memory,
		identities: map[string]*Identity{}, accounts: map[string]account{},
	}, nil
}

// Mapper returns the member's kinds.
func (m *Member) Mapper() meta.RESTMapper { return m.mapper }

// Memory returns what all identities remember of objects.
func (m *Member) Memory() *synced.Memory { return m.memory }

// Config returns the agent's own way to the member.
func (m *Member) Config() *rest.Config { return rest.CopyConfig(m.config) }

// Namespace returns the agent's own.
func (m *Member) Namespace() string { return m.namespace }

// Self returns the agent's own identity.
func (m *Member) Self() (*Identity, error) { return m.identity("") }

// As returns the identity for a bundle's service account. One that is named must exist; without a name
// the account fleet-default stands in if it exists, else the agent itself.
func (m *Member) As(ctx context.Context, serviceAccount string) (*Identity, error) {
	self, err := m.Self()
	if err != nil {
		return nil, err
	}
	name := serviceAccount
	if name == "" {
		name = defaultServiceAccount
	}
	exists, err := m.hasAccount(ctx, self, name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("get service account %s/%s: %w", m.namespace, name, err)
	case exists:
		return m.identity(name)
	case serviceAccount != "":
		return nil, fault.New(fault.Stalled, "ServiceAccountNotFound", "service account %s/%s does not exist", m.namespace, name)
	}
	return self, nil
}

func (m *Member) hasAccount(ctx context.Context, self *Identity, name string) (bool, error) {
	m.mu.Lock()
	known := m.accounts[name]
	m.mu.Unlock()
	now := time.Now()
	if !known.asked.IsZero() && now.Sub(known.asked) < accountLife {
		return known.exists, nil
	}
	_, err := self.Clients.CoreV1().ServiceAccounts(m.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.accounts[name] = account{exists: err == nil, asked: now}
	return err == nil, nil
}

// Known returns the identity of a name that As has given out.
func (m *Member) Known(name string) (*Identity, error) { return m.identity(name) }

func (m *Member) identity(serviceAccount string) (*Identity, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.identities[serviceAccount]; known != nil {
		return known, nil
	}
	config := rest.CopyConfig(m.config)
	if serviceAccount != "" {
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + m.namespace + ":" + serviceAccount,
		}
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make clients: %w", err)
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make clients: %w", err)
	}
	made := &Identity{
		Writer:  apply.NewWriter(dynamicClient, m.dynamic, m.mapper, m.memory),
		Clients: clients, Dynamic: dynamicClient, Name: serviceAccount, config: config, member: m,
	}
	m.identities[serviceAccount] = made
	return made, nil
}

// capabilitiesLife is how long they hold for who asks for them: bundles that are deployed together share an answer.
const capabilitiesLife = time.Second

// Capabilities returns what the member's API server offers. They are asked for once, again after Refresh, and
// whenever a chart asks for them: what it renders without a kind that is there by now would be deleted.
func (m *Member) Capabilities(asked bool) (*chartutil.Capabilities, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.capabilities != nil && (!asked || time.Since(m.askedKinds) < capabilitiesLife) {
		return m.capabilities, nil
	}
	now := time.Now()
	client, err := discovery.NewDiscoveryClientForConfig(m.config)
	if err != nil {
		return nil, fmt.Errorf("make discovery client: %w", err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("ask the member for its version: %w", err)
	}
	kinds, err := action.GetVersionSet(client)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("ask the member for its kinds: %w", err)
	}
	m.capabilities = &chartutil.Capabilities{
		KubeVersion: chartutil.KubeVersion{Version: version.GitVersion, Major: version.Major, Minor: version.Minor},
		APIVersions: kinds,
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion,
	}
	m.askedKinds = now
	return m.capabilities, nil
}

// Refresh makes the next Capabilities ask the member again.
func (m *Member) Refresh() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capabilities = nil
}

// Member returns where the identity is known.
func (i *Identity) Member() *Member { return i.member }

// ToRESTConfig implements Helm's RESTClientGetter: lookup reads as the bundle's identity.
func (i *Identity) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(i.config), nil }

// ToDiscoveryClient implements Helm's RESTClientGetter.
func (i *Identity) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	client, err := discovery.NewDiscoveryClientForConfig(i.config)
	if err != nil {
		return nil, err
	}
	return memory.NewMemCacheClient(client), nil
}

// ToRESTMapper implements Helm's RESTClientGetter.
func (i *Identity) ToRESTMapper() (meta.RESTMapper, error) { return i.member.mapper, nil }
