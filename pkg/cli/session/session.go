package session

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	// LocalNamespace is where bundles go that name no namespace; upstream's default.
	LocalNamespace = "fleet-local"
	// WorkspaceNamespace is looked at when nothing says which namespace is meant.
	WorkspaceNamespace = "fleet-default"
)

// Environment holds the settings that come from environment variables; the zero value is fine.
type Environment struct {
	// Namespace stands in for --namespace (NAMESPACE).
	Namespace string
	// Commit stands in for --commit (COMMIT).
	Commit string
	// HelmUsername stands in for --username (HELM_USERNAME).
	HelmUsername string
	// KnownHosts are the SSH host keys to trust for charts from git (FLEET_KNOWN_HOSTS).
	KnownHosts string
	// ConflictRetries is how often a write is tried when others write too (FLEET_APPLY_CONFLICT_RETRIES).
	ConflictRetries string
	// Concurrency bounds the writes at one time (FLEET_BUNDLE_CREATION_MAX_CONCURRENCY).
	Concurrency string
	// NoRegistries keeps bundle contents on the hub whatever registry is named (OCI_STORAGE=false).
	NoRegistries bool
	// JSONErrors prints a failure as a line of JSON (FLEET_JSON_OUTPUT).
	JSONErrors bool
	// Proxy returns the proxy for a request of a chart; nil means none.
	Proxy func(*http.Request) (*url.URL, error)
}

// Session is one run of the program.
type Session struct {
	genericiooptions.IOStreams
	Env Environment
	// Now is the clock for ages.
	Now func() time.Time

	config *genericclioptions.ConfigFlags
	saying sync.Mutex
	once   sync.Once
	client client.WithWatch
	err    error
}

// New returns a session; nothing is read or connected to yet.
func New(streams genericiooptions.IOStreams, env Environment) *Session {
	config := genericclioptions.NewConfigFlags(true)
	// No discovery is cached on disk, so nothing is written to the home directory.
	config.CacheDir = nil
	config.WrapConfigFn = func(config *rest.Config) *rest.Config {
		// The server's own priorities are enough; a brake here only makes tables slow.
		config.QPS = -1
		return config
	}
	return &Session{IOStreams: streams, Env: env, Now: time.Now, config: config}
}

// AddFlags adds the flags that every command has: those of kubectl that say which cluster, as whom and where.
func (s *Session) AddFlags(flags *pflag.FlagSet) { s.config.AddFlags(flags) }

// Namespace returns the namespace that the command line or the environment names, or fallback. It reads
// no kubeconfig.
func (s *Session) Namespace(fallback string) string {
	switch {
	case s.config.Namespace != nil && *s.config.Namespace != "":
		return *s.config.Namespace
	case s.Env.Namespace != "":
		return s.Env.Namespace
	}
	return fallback
}

// NamespaceOf returns the namespace for an object from a file: the one that the command line names, else the
// object's own, else the one bundles go to.
func (s *Session) NamespaceOf(own string) string {
	if s.config.Namespace != nil && *s.config.Namespace != "" {
		return *s.config.Namespace
	}
	if own != "" {
		return own
	}
	return s.Namespace(LocalNamespace)
}

// Workspace returns the namespace to look at: the one that is named, else that of the kubeconfig's
// context, else the one where members usually are.
func (s *Session) Workspace() (string, error) {
	if named := s.Namespace(""); named != "" {
		return named, nil
	}
	raw, err := s.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return "", fmt.Errorf("read kubeconfig: %w", err)
	}
	current := raw.CurrentContext
	if s.config.Context != nil && *s.config.Context != "" {
		current = *s.config.Context
	}
	if context := raw.Contexts[current]; context != nil && context.Namespace != "" {
		return context.Namespace, nil
	}
	return WorkspaceNamespace, nil
}

// RESTConfig returns the connection that the flags and the kubeconfig describe.
func (s *Session) RESTConfig() (*rest.Config, error) {
	config, err := s.config.ToRESTConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errNoCluster
	}
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	// Without a kubeconfig the library guesses an address that nothing listens on.
	raw, err := s.config.ToRawKubeConfigLoader().RawConfig()
	if err == nil && len(raw.Clusters) == 0 && *s.config.APIServer == "" && config.Host == clientcmd.ClusterDefaults.Server {
		return nil, errNoCluster
	}
	return config, nil
}

var errNoCluster = errors.New("no cluster is known: there is no kubeconfig (pass --kubeconfig, or files where the command takes them)")

// Client returns a client for the hub; the first call makes it.
func (s *Session) Client() (client.WithWatch, error) {
	s.once.Do(func() {
		config, err := s.RESTConfig()
		if err != nil {
			s.err = err
			return
		}
		scheme, err := Scheme()
		if err != nil {
			s.err = err
			return
		}
		if s.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
			s.err = fmt.Errorf("connect to %s: %w", config.Host, err)
		}
	})
	return s.client, s.err
}

// Scheme returns a scheme with Kubernetes' own kinds and Fleet's.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	if err := fleet.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register kinds: %w", err)
	}
	return scheme, nil
}

// Warn prints a line for people, beside the data.
func (s *Session) Warn(format string, args ...any) { s.Say("warning: "+format, args...) }

// WarnAll warns of each of the messages.
func (s *Session) WarnAll(messages []string) {
	for _, message := range messages {
		s.Warn("%s", message)
	}
}

// Say prints a line for people, beside the data. Whether anybody reads it changes nothing.
func (s *Session) Say(format string, args ...any) {
	s.saying.Lock()
	defer s.saying.Unlock()
	_, _ = fmt.Fprintf(s.ErrOut, format+"\n", args...)
}

// ReadFile returns the content of a file, or of standard input for "-".
func (s *Session) ReadFile(name string) ([]byte, error) {
	if name == "-" {
		data, err := io.ReadAll(s.In)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		return data, nil
	}
	return os.ReadFile(name)
}

// WriteFile writes data to a file, or to standard output for "-".
func (s *Session) WriteFile(name string, data []byte) error {
	if name == "-" {
		_, err := s.Out.Write(data)
		return err
	}
	return os.WriteFile(name, data, 0o600)
}

// WriteFrom is WriteFile for what is not in memory as a whole.
func (s *Session) WriteFrom(name string, write func(io.Writer) error) error {
	if name == "-" {
		return write(s.Out)
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
