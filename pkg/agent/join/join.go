package join

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fairlead-dev/fairlead/pkg/agent/hub"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// ProtocolVersion the agent speaks: since 2 it understands BundleDeployments with parts (merge.Protocol).
const ProtocolVersion = 2

// DefaultAgentID tells the one agent of a cluster; several need ids of their own.
const DefaultAgentID = "fleet-agent"

// Keys of the Secret of a registration that is under way.
const (
	registrationNameKey   = "name"
	registrationRandomKey = "random"
	registrationKeyKey    = "key"
	registrationSourceKey = "source"
)

// answerBackoff spaces the questions for the hub's answer: from a fifth of a second to five seconds,
// ten minutes in all.
var answerBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Cap: 5 * time.Second, Steps: 120}

// Joiner gets an agent its identity.
type Joiner struct {
	// Member and Namespace are where the agent keeps its Secrets.
	Member    kubernetes.Interface
	Namespace string
	// AgentID is the last part of the identity; "" means DefaultAgentID.
	AgentID string
	// AgentVersion is reported to the hub.
	AgentVersion string
	UserAgent    string
	Log          logr.Logger
}

// Ensure returns an identity that works: the stored one, or a new one when there is none, or when it
// has ended and there is a bootstrap Secret to get another with. Without either it returns an error of
// class Waiting.
func (j *Joiner) Ensure(ctx context.Context, now time.Time) (*Credential, error) {
	settings, err := ReadSettings(ctx, j.Member, j.Namespace)
	if err != nil {
		return nil, err
	}
	boot, err := readBootstrap(ctx, j.Member, j.Namespace, settings)
	if err != nil {
		return nil, err
	}
	stored, err := Load(ctx, j.Member, j.Namespace)
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
	case stored != nil && !stored.expired(now):
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
func (j *Joiner) isRefused(ctx context.Context, credential Credential) bool {
	connection, err := Connect(credential, j.UserAgent)
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

func (j *Joiner) register(ctx context.Context, boot *bootstrap, settings Settings) (*Credential, error) {
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
	kubeconfig, err := kubeconfigFor(boot.url, boot.ca, answer.Status.Certificate, under.key)
	if err != nil {
		return nil, err
	}
	credential := &Credential{
		Kubeconfig: kubeconfig, DeploymentNamespace: answer.Status.ClusterNamespace,
		ClusterNamespace: boot.workspace, ClusterName: answer.Status.ClusterName, TrustSystem: boot.trustSystem,
	}
	if err := credential.store(ctx, j.Member, j.Namespace); err != nil {
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
	key, err := newKey()
	if err != nil {
		return pending{}, err
	}
	under := pending{random: hex.EncodeToString(random), source: boot.digest(), key: key}
	if under.name, err = registrationName(key); err != nil {
		return pending{}, err
	}
	return under, putSecret(ctx, j.Member, j.Namespace, RegistrationSecret, map[string][]byte{
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
	version, err := j.Member.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the member for its version: %w", err)
	}
	spec.KubernetesVersion = version.GitVersion
	spec.AgentVersion = j.AgentVersion
	spec.ProtocolVersion = ProtocolVersion
	if spec.AgentID = j.AgentID; spec.AgentID == "" {
		spec.AgentID = DefaultAgentID
	}
	return nil
}

// prove lists deployments with the new identity; its rights may come a moment after it.
func (j *Joiner) prove(ctx context.Context, credential Credential) error {
	connection, err := Connect(credential, j.UserAgent)
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

// registration is one request on the hub.
type registration struct {
	client          rest.Interface
	namespace, name string
}

const registrationsResource = "clusterregistrations"

func (r registration) create(ctx context.Context, wanted *fleet.ClusterRegistration) error {
	err := r.client.Post().Namespace(r.namespace).Resource(registrationsResource).Body(wanted).Do(ctx).Error()
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsUnauthorized(err):
		return fault.New(fault.Stalled, "TokenRefused", "the hub refuses the registration token: it may have expired; install the agent with a new one (%w)", err)
	case err != nil:
		return fmt.Errorf("create registration %s/%s: %w", r.namespace, r.name, err)
	}
	return nil
}

// certified returns the registration once it holds a certificate for the key, and hands in the request
// for it as soon as the hub has said whose name it has to bear.
func (r registration) certified(ctx context.Context, key []byte) (*fleet.ClusterRegistration, error) {
	var answer *fleet.ClusterRegistration
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, answerBackoff, func(ctx context.Context) (bool, error) {
		answer = &fleet.ClusterRegistration{}
		last = r.client.Get().Namespace(r.namespace).Resource(registrationsResource).Name(r.name).Do(ctx).Into(answer)
		if last != nil {
			return false, ended(last)
		}
		done, err := r.advance(ctx, answer, key)
		last = err
		return done, ended(err)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, fmt.Errorf("wait for the hub's answer to registration %s/%s: %w", r.namespace, r.name, errors.Join(err, last))
	}
	return answer, err
}

// ended returns the error if asking again is of no use. The right to see the registration comes a
// moment after its creation.
func ended(err error) error {
	switch {
	case fault.ClassOf(err) == fault.Stalled, apierrors.IsNotFound(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err):
		return err
	}
	return nil
}

func (r registration) advance(ctx context.Context, answer *fleet.ClusterRegistration, key []byte) (bool, error) {
	status := answer.Status
	switch {
	case status.State == fleet.RegistrationRejected:
		reason := status.Reason
		if reason == "" {
			reason = "Rejected"
		}
		return false, fault.New(fault.Stalled, reason, "the hub rejected the registration: %s: %s", reason, status.Message)
	case len(status.Certificate) > 0:
		return true, fits(status.Certificate, key)
	case status.Identity == nil || len(answer.Spec.CSR) > 0:
		return false, nil
	}
	request, err := newRequest(key, *status.Identity)
	if err != nil {
		return false, err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"csr": request}})
	if err != nil {
		return false, err
	}
	return false, r.client.Patch(types.MergePatchType).Namespace(r.namespace).Resource(registrationsResource).
		Name(r.name).Body(patch).Do(ctx).Error()
}

// fits returns an error when a certificate is for another key.
func fits(certificate, key []byte) error {
	kubeconfig, err := kubeconfigFor("https://hub.invalid", nil, certificate, key)
	if err != nil {
		return err
	}
	if _, err := (Credential{Kubeconfig: kubeconfig}).Certificate(); err != nil {
		return fault.New(fault.Stalled, "InvalidCertificate", "the hub's certificate is for another key")
	}
	return nil
}

// registrationName binds a registration to its key.
func registrationName(keyPEM []byte) (string, error) {
	key, err := parseKey(keyPEM)
	if err != nil {
		return "", err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", fmt.Errorf("encode the key: %w", err)
	}
	return names.KeyedRegistration(public), nil
}

func parseKey(keyPEM []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("the stored key is no PEM")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the stored key cannot be read")
	}
	return key, nil
}

func newKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	data, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: data}), nil
}

// newRequest returns a certificate request, PEM, for an identity.
func newRequest(keyPEM []byte, identity fleet.AgentIdentity) ([]byte, error) {
	key, err := parseKey(keyPEM)
	if err != nil {
		return nil, err
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: identity.User, Organization: identity.Groups}}
	data, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: data}), nil
}
