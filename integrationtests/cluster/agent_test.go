package cluster

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// values are what the agent's chart gets from a token's Secret.
type values struct {
	ClusterNamespace            string `json:"clusterNamespace"`
	APIServerURL                string `json:"apiServerURL"`
	APIServerCA                 string `json:"apiServerCA"`
	Token                       string `json:"token"`
	TokenName                   string `json:"tokenName"`
	SystemRegistrationNamespace string `json:"systemRegistrationNamespace"`
}

// token makes a registration token and returns its values when they are ready.
func (h *hub) token(t *testing.T, namespace, name string, ttl time.Duration) values {
	t.Helper()
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if ttl > 0 {
		token.Spec.TTL = &fleet.Duration{Duration: ttl}
	}
	h.create(t, token)
	wait(t, h, token, "has its values", func(c *fleet.ClusterRegistrationToken) error {
		if c.Status.SecretName == "" {
			return errors.New("no secretName")
		}
		return nil
	})
	var secret corev1.Secret
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: token.Status.SecretName}, &secret); err != nil {
		t.Fatal(err)
	}
	if secret.Type != fleet.RegistrationValuesSecretType {
		t.Errorf("the values' Secret has type %s", secret.Type)
	}
	var v values
	if err := yaml.UnmarshalStrict(secret.Data["values"], &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// config returns the access that the values give.
func (v values) config() *rest.Config {
	return &rest.Config{Host: v.APIServerURL, BearerToken: v.Token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(v.APIServerCA)}}
}

// request is a registration as the agent makes it.
func (v values) request(clientID string) *fleet.ClusterRegistration {
	return &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.ClusterNamespace, GenerateName: "request-",
			Labels: map[string]string{fleet.RegistrationTokenLabel: v.TokenName},
		},
		Spec: fleet.ClusterRegistrationSpec{
			ClientID: clientID, ClientRandom: rand.Text(), ProtocolVersion: 1, AgentID: "fleet-agent",
			ClusterLabels: map[string]string{
				"env": "dev", "fleet.cattle.io/managed": "true", "management.cattle.io/cluster-name": "other",
				fleet.AgentPodLabel: "fleet-agent-0",
			},
		},
	}
}

// newCSR returns a request for an identity with its key, both in PEM.
func newCSR(t *testing.T, identity fleet.AgentIdentity) (request, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: identity.User, Organization: identity.Groups},
	}, private)
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

// later waits until what is created now is newer than an object: creation times count seconds.
func later(t *testing.T, than client.Object) {
	t.Helper()
	kubetest.Eventually(t, "a second has passed", func(context.Context) error {
		if created := than.GetCreationTimestamp(); time.Now().Unix() <= created.Unix()+1 {
			return errors.New("not yet")
		}
		return nil
	})
}

// ask creates a registration and returns it once it is answered, all with the agent's own rights.
func ask(t *testing.T, agent client.Client, registration *fleet.ClusterRegistration) *fleet.ClusterRegistration {
	t.Helper()
	if err := agent.Create(t.Context(), registration); err != nil {
		t.Fatal(err)
	}
	return follow(t, agent, registration, func(r *fleet.ClusterRegistration) bool {
		return r.Status.Identity != nil || r.Status.State == fleet.RegistrationRejected
	})
}

// submit adds a certificate request to an approved registration and returns it once it is decided.
func submit(t *testing.T, agent client.Client, registration *fleet.ClusterRegistration, csr []byte) *fleet.ClusterRegistration {
	t.Helper()
	before := registration.DeepCopy()
	registration.Spec.CSR = csr
	if err := agent.Patch(t.Context(), registration, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	return follow(t, agent, registration, func(r *fleet.ClusterRegistration) bool {
		return r.Status.Granted || r.Status.State == fleet.RegistrationRejected
	})
}

func follow(t *testing.T, agent client.Client, registration *fleet.ClusterRegistration, done func(*fleet.ClusterRegistration) bool) *fleet.ClusterRegistration {
	t.Helper()
	kubetest.Eventually(t, "registration "+registration.Name+" is answered", func(ctx context.Context) error {
		if err := agent.Get(ctx, client.ObjectKeyFromObject(registration), registration); err != nil {
			return err // forbidden until the hub has granted it
		}
		if !done(registration) {
			return fmt.Errorf("status is %+v", registration.Status)
		}
		return nil
	})
	return registration
}

// joined is an agent that has its certificate.
type joined struct {
	client       client.Client
	registration *fleet.ClusterRegistration
	namespace    string // its own, on the hub
	clusterName  string
}

func (h *hub) join(t *testing.T, v values, clientID string) *joined {
	t.Helper()
	asking := h.as(t, v.config())
	registration := ask(t, asking, v.request(clientID))
	if registration.Status.State != fleet.RegistrationApproved {
		t.Fatalf("not approved: %+v", registration.Status)
	}
	csr, key := newCSR(t, *registration.Status.Identity)
	registration = submit(t, asking, registration, csr)
	return h.identify(t, registration, key)
}

// identify turns a granted registration into an agent's access.
func (h *hub) identify(t *testing.T, registration *fleet.ClusterRegistration, key []byte) *joined {
	t.Helper()
	if registration.Status.State != fleet.RegistrationGranted {
		t.Fatalf("not granted: %+v", registration.Status)
	}
	config := &rest.Config{Host: h.kube.URL(), QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: h.kube.CA(), CertData: registration.Status.Certificate, KeyData: key,
	}}
	return &joined{
		client: h.as(t, config), registration: registration,
		namespace: registration.Status.ClusterNamespace, clusterName: registration.Status.ClusterName,
	}
}

// renewLease is one heartbeat.
func (j *joined) renewLease(t *testing.T, seconds int32) {
	t.Helper()
	var lease coordinationv1.Lease
	err := j.client.Get(t.Context(), client.ObjectKey{Namespace: j.namespace, Name: "fleet-agent"}, &lease)
	lease.Annotations = map[string]string{
		"fleet.cattle.io/agent-version": "v9", "fleet.cattle.io/kubernetes-version": "v1.37.2",
		"fleet.cattle.io/agent-namespace": "cattle-fleet-system", "fleet.cattle.io/protocol-version": "1",
	}
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("agent"), LeaseDurationSeconds: ptr.To(seconds), RenewTime: ptr.To(metav1.NowMicro()),
	}
	if err == nil {
		err = j.client.Update(t.Context(), &lease)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reportApplied is what an agent reports of a deployment; an empty id means that nothing is installed.
func (j *joined) reportApplied(t *testing.T, deployment *fleet.BundleDeployment, id string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"appliedDeploymentID":%q}}`, id))
	if err := j.client.Status().Patch(t.Context(), deployment.DeepCopy(), patch); err != nil {
		t.Fatal(err)
	}
}
