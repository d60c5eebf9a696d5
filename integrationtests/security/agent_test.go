package security

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// token is a registration token in the hands of whoever found it.
type token struct {
	h         *hub
	workspace string
	name      string
	config    *rest.Config
	client    client.WithWatch
}

func (h *hub) token(workspace, name string) *token {
	h.t.Helper()
	made := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: name}}
	made.Spec.TTL = &fleet.Duration{Duration: time.Hour}
	h.create(made)
	wait(h, made, "has its values", func(c *fleet.ClusterRegistrationToken) error {
		if c.Status.SecretName == "" {
			return errors.New("no secretName")
		}
		return nil
	})
	var secret corev1.Secret
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: workspace, Name: made.Status.SecretName}, &secret); err != nil {
		h.t.Fatal(err)
	}
	var values struct {
		Token string `json:"token"`
	}
	if err := yaml.Unmarshal(secret.Data["values"], &values); err != nil {
		h.t.Fatal(err)
	}
	config := &rest.Config{Host: h.kube.URL(), BearerToken: values.Token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: h.kube.CA()}}
	return &token{h: h, workspace: workspace, name: name, config: config, client: h.as(config)}
}

// request is a registration as the agent makes it.
func (k *token) request(clientID string) *fleet.ClusterRegistration {
	return &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.workspace, GenerateName: "request-", Labels: map[string]string{fleet.RegistrationTokenLabel: k.name},
		},
		Spec: fleet.ClusterRegistrationSpec{ClientID: clientID, ClientRandom: rand.Text(), ProtocolVersion: 1, AgentID: "fleet-agent"},
	}
}

// ask makes a registration and returns it once the hub has answered.
func (k *token) ask(registration *fleet.ClusterRegistration) *fleet.ClusterRegistration {
	k.h.t.Helper()
	if err := k.client.Create(k.h.t.Context(), registration); err != nil {
		k.h.t.Fatal(err)
	}
	return follow(k.h.t, k.client, registration, func(r *fleet.ClusterRegistration) bool {
		return r.Status.Identity != nil || decided(r)
	})
}

func decided(r *fleet.ClusterRegistration) bool {
	return r.Status.Granted || r.Status.State == fleet.RegistrationRejected
}

// follow reads a registration with the rights of its agent.
func follow(t *testing.T, reader client.Client, registration *fleet.ClusterRegistration, done func(*fleet.ClusterRegistration) bool) *fleet.ClusterRegistration {
	t.Helper()
	kubetest.Eventually(t, "registration "+registration.Name+" is answered", func(ctx context.Context) error {
		if err := reader.Get(ctx, client.ObjectKeyFromObject(registration), registration); err != nil {
			return err // forbidden until the hub has granted it
		}
		if !done(registration) {
			return fmt.Errorf("status is %+v", registration.Status)
		}
		return nil
	})
	return registration
}

// agent has a cluster's certificate.
type agent struct {
	h            *hub
	config       *rest.Config
	client       client.WithWatch
	registration *fleet.ClusterRegistration
	// namespace is its own on the hub.
	namespace string
	cluster   *fleet.Cluster
}

// join registers as an honest agent does.
func (k *token) join(clientID string) *agent {
	k.h.t.Helper()
	t := k.h.t
	registration := k.ask(k.request(clientID))
	if registration.Status.State != fleet.RegistrationApproved {
		t.Fatalf("not approved: %+v", registration.Status)
	}
	csr, key := newCSR(t, *registration.Status.Identity, nil)
	patch(t, k.client, registration, map[string]any{"spec": map[string]any{"csr": csr}})
	follow(t, k.client, registration, decided)
	if !registration.Status.Granted {
		t.Fatalf("not granted: %+v", registration.Status)
	}
	config := &rest.Config{Host: k.h.kube.URL(), QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: k.h.kube.CA(), CertData: registration.Status.Certificate, KeyData: key,
	}}
	return &agent{
		h: k.h, config: config, client: k.h.as(config), registration: registration, namespace: registration.Status.ClusterNamespace,
		cluster: &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: k.workspace, Name: names.ClusterForClient(clientID)}},
	}
}

// beat renews the agent's lease for a long time, after change had its way with it.
func (a *agent) beat(change func(*coordinationv1.Lease)) {
	a.h.t.Helper()
	kubetest.Eventually(a.h.t, "the lease is renewed", func(ctx context.Context) error { // the hub may write it too
		var lease coordinationv1.Lease
		if err := a.client.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: "fleet-agent"}, &lease); err != nil {
			return err
		}
		lease.Annotations = map[string]string{"fleet.cattle.io/agent-version": "v9", "fleet.cattle.io/protocol-version": "1"}
		lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = ptr.To(int32(600)), ptr.To(metav1.NowMicro())
		if change != nil {
			change(&lease)
		}
		return a.client.Update(ctx, &lease)
	})
}

// live beats until the hub counts the agent as there.
func (a *agent) live() {
	a.h.t.Helper()
	a.beat(nil)
	wait(a.h, a.cluster, "is ready", func(c *fleet.Cluster) error {
		if c.Status.Phase != fleet.ClusterReady || c.Status.Versions == nil {
			return fmt.Errorf("phase %s, versions %v", c.Status.Phase, c.Status.Versions)
		}
		return nil
	})
}

// newCSR returns a request for an identity with its key, both in PEM.
func newCSR(t *testing.T, identity fleet.AgentIdentity, change func(*x509.CertificateRequest)) (request, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: identity.User, Organization: identity.Groups}}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}
