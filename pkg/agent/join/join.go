package join

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fairlead-dev/fairlead/pkg/agent/hub"
	"github.com/fairlead-dev/fairlead/pkg/agent/identity"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
	"github.com/fairlead-dev/fairlead/pkg/version"
)

// Keys of the Secret of a registration that is under way.
const (
	registrationNameKey   = "name"
	registrationRandomKey = "random"
	registrationKeyKey    = "key"
	registrationSourceKey = "source"
)

// Joiner gets an agent its identity.
type Joiner struct {
	// Member and Namespace are where the agent keeps its Secrets.
	Member    kubernetes.Interface
	Namespace string
	// AgentID is the last part of the identity; "" means names.DefaultAgentID.
	AgentID string
	// AgentVersion is reported to the hub.
	AgentVersion string
	UserAgent    string
	Log          logr.Logger
}

// Ensure returns an identity that works: the stored one, or a new one when there is none, or when it
// has ended and there is a bootstrap Secret to get another with. Without either it returns an error of
// class Waiting.
func (j *Joiner) Ensure(ctx context.Context, now time.Time) (*identity.Credential, error) {
	settings, err := ReadSettings(ctx, j.Member, j.Namespace)
	if err != nil {
		return nil, err
	}
	boot, err := readBootstrap(ctx, j.Member, j.Namespace, settings)
	if err != nil {
		return nil, err
	}
	stored, err := identity.Load(ctx, j.Member, j.Namespace)
	if err != nil {
		return nil, err
	}
	if stored != nil {
		if stored.TrustSystem, err = settings.trustsSystem(); err != nil {
			return nil, err
		}
	}
	switch {
	case stored != nil && boot == nil:
		return stored, nil
	case stored != nil && !stored.Expired(now):
		if !j.isRefused(ctx, *stored) {
			return stored, j.finish(ctx)
		}
	case boot == nil:
		return nil, fault.New(fault.Waiting, "NotRegistered", "secret %s/%s does not exist: there is nothing to register with", j.Namespace, BootstrapSecret)
	}
	credential, err := j.register(ctx, boot, settings)
	if err != nil {
		return nil, fmt.Errorf("register with %s: %w", boot.url, err)
	}
	return credential, nil
}

// isRefused asks the hub whether it knows the identity. A hub that cannot be reached does not refuse.
func (j *Joiner) isRefused(ctx context.Context, credential identity.Credential) bool {
	connection, err := identity.Connect(credential, j.UserAgent)
	if err != nil {
		return true
	}
	defer connection.CloseIdleConnections()
	err = listDeployments(ctx, connection.Config(), credential.DeploymentNamespace)
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
}

func listDeployments(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := hub.NewClient(config)
	if err != nil {
		return err
	}
	return client.Get().Namespace(namespace).Resource("bundledeployments").Param("limit", "1").Do(ctx).Error()
}

// pending is a registration that is under way. It is stored before the hub hears of it.
type pending struct {
	name, random, source string
	key                  []byte
}

func (j *Joiner) register(ctx context.Context, boot *bootstrap, settings Settings) (*identity.Credential, error) {
	config, err := boot.config(j.UserAgent)
	if err != nil {
		return nil, err
	}
	client, err := hub.NewClient(config)
	if err != nil {
		return nil, err
	}
	under, err := j.takeUp(ctx, boot)
	if err != nil {
		return nil, err
	}
	request := registration{client: client, namespace: boot.workspace, name: under.name}
	wanted, err := j.request(ctx, boot, settings, under)
	if err != nil {
		return nil, err
	}
	if err := request.create(ctx, wanted); err != nil {
		return nil, err
	}
	j.Log.Info("registration requested", "namespace", boot.workspace, "name", under.name)
	answer, err := request.certified(ctx, under.key)
	if err != nil {
		if fault.ClassOf(err) == fault.Stalled || apierrors.IsNotFound(err) {
			// The next attempt is a new request.
			return nil, errors.Join(err, j.deleteSecret(ctx, RegistrationSecret))
		}
		return nil, err
	}
	kubeconfig, err := identity.Kubeconfig(boot.url, boot.ca, answer.Status.Certificate, under.key)
	if err != nil {
		return nil, err
	}
	credential := &identity.Credential{
		Kubeconfig: kubeconfig, DeploymentNamespace: answer.Status.ClusterNamespace,
		ClusterNamespace: boot.workspace, ClusterName: answer.Status.ClusterName, TrustSystem: boot.trustSystem,
	}
	if err := credential.Store(ctx, j.Member, j.Namespace); err != nil {
		return nil, err
	}
	if err := j.prove(ctx, *credential); err != nil {
		return nil, err
	}
	j.Log.Info("registered", "cluster", credential.ClusterName, "namespace", credential.DeploymentNamespace)
	return credential, j.finish(ctx)
}

// takeUp returns the registration that was under way with the same bootstrap, or starts one.
func (j *Joiner) takeUp(ctx context.Context, boot *bootstrap) (pending, error) {
	secret, err := j.Member.CoreV1().Secrets(j.Namespace).Get(ctx, RegistrationSecret, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return pending{}, fmt.Errorf("get secret %s/%s: %w", j.Namespace, RegistrationSecret, err)
	}
	if err == nil && string(secret.Data[registrationSourceKey]) == boot.digest() {
		return pending{
			name: string(secret.Data[registrationNameKey]), random: string(secret.Data[registrationRandomKey]),
			source: boot.digest(), key: secret.Data[registrationKeyKey],
		}, nil
	}
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		return pending{}, err
	}
	key, err := identity.NewKey()
	if err != nil {
		return pending{}, err
	}
	under := pending{random: hex.EncodeToString(random), source: boot.digest(), key: key}
	if under.name, err = registrationName(key); err != nil {
		return pending{}, err
	}
	return under, identity.Keep(ctx, j.Member, j.Namespace, RegistrationSecret, map[string][]byte{
		registrationNameKey: []byte(under.name), registrationRandomKey: []byte(under.random),
		registrationSourceKey: []byte(under.source), registrationKeyKey: under.key,
	})
}

func (j *Joiner) request(ctx context.Context, boot *bootstrap, settings Settings, under pending) (*fleet.ClusterRegistration, error) {
	clientID := settings.ClientID
	if clientID == "" {
		system, err := j.Member.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("get namespace %s: %w", metav1.NamespaceSystem, err)
		}
		clientID = string(system.UID)
	}
	wanted := &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{Namespace: boot.workspace, Name: under.name, Labels: map[string]string{}},
		Spec: fleet.ClusterRegistrationSpec{
			ClientID: clientID, ClientRandom: under.random, ClusterLabels: settings.Labels, ClusterName: settings.ClusterName,
		},
	}
	if boot.tokenName != "" {
		wanted.Labels[fleet.RegistrationTokenLabel] = boot.tokenName
	}
	return wanted, j.describe(&wanted.Spec)
}

// describe fills in versions and ids.
func (j *Joiner) describe(spec *fleet.ClusterRegistrationSpec) error {
	member, err := j.Member.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the member for its version: %w", err)
	}
	spec.KubernetesVersion = member.GitVersion
	spec.AgentVersion = j.AgentVersion
	spec.ProtocolVersion = version.Protocol
	if spec.AgentID = j.AgentID; spec.AgentID == "" {
		spec.AgentID = names.DefaultAgentID
	}
	return nil
}

// prove lists deployments with the new identity; its rights may come a moment after it.
func (j *Joiner) prove(ctx context.Context, credential identity.Credential) error {
	connection, err := identity.Connect(credential, j.UserAgent)
	if err != nil {
		return err
	}
	defer connection.CloseIdleConnections()
	var last error
	err = wait.ExponentialBackoffWithContext(ctx, answerBackoff, func(ctx context.Context) (bool, error) {
		last = listDeployments(ctx, connection.Config(), credential.DeploymentNamespace)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("list deployments in %s with the new identity: %w", credential.DeploymentNamespace, errors.Join(err, last))
	}
	return nil
}

// finish removes what is only needed to register.
func (j *Joiner) finish(ctx context.Context) error {
	return errors.Join(j.deleteSecret(ctx, RegistrationSecret), j.deleteSecret(ctx, BootstrapSecret))
}

func (j *Joiner) deleteSecret(ctx context.Context, name string) error {
	err := j.Member.CoreV1().Secrets(j.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete secret %s/%s: %w", j.Namespace, name, err)
	}
	return nil
}
