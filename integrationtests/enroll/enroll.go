package enroll

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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Values are what the agent's chart gets from a token's Secret.
type Values struct {
	ClusterNamespace            string `json:"clusterNamespace"`
	APIServerURL                string `json:"apiServerURL"`
	APIServerCA                 string `json:"apiServerCA"`
	Token                       string `json:"token"`
	TokenName                   string `json:"tokenName"`
	SystemRegistrationNamespace string `json:"systemRegistrationNamespace"`
}

// Token makes a registration token, as an administrator, and returns its values when they are ready. It lives for ever
// if ttl is 0.
func Token(t testing.TB, admin client.Client, namespace, name string, ttl time.Duration) Values {
	t.Helper()
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if ttl > 0 {
		token.Spec.TTL = &fleet.Duration{Duration: ttl}
	}
	if err := admin.Create(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "token "+name+" has its values", func(ctx context.Context) error {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
			return err
		}
		if token.Status.SecretName == "" {
			return errors.New("no secretName")
		}
		return nil
	})
	var secret corev1.Secret
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: token.Status.SecretName}, &secret); err != nil {
		t.Fatal(err)
	}
	if secret.Type != fleet.RegistrationValuesSecretType {
		t.Errorf("the values' Secret has type %s", secret.Type)
	}
	var values Values
	if err := yaml.UnmarshalStrict(secret.Data["values"], &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// Config returns the access that the values give.
func (v Values) Config() *rest.Config {
	return &rest.Config{Host: v.APIServerURL, BearerToken: v.Token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(v.APIServerCA)}}
}

// Granted returns the access that a granted registration gives to who has the key.
func (v Values) Granted(registration *fleet.ClusterRegistration, key []byte) *rest.Config {
	return &rest.Config{Host: v.APIServerURL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAData: []byte(v.APIServerCA), CertData: registration.Status.Certificate, KeyData: key,
	}}
}

// Request returns a registration as the agent makes it.
func (v Values) Request(clientID string) *fleet.ClusterRegistration {
	return &fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v.ClusterNamespace, GenerateName: "request-",
			Labels: map[string]string{fleet.RegistrationTokenLabel: v.TokenName},
		},
		Spec: fleet.ClusterRegistrationSpec{ClientID: clientID, ClientRandom: rand.Text(), ProtocolVersion: 1, AgentID: "fleet-agent"},
	}
}

// Join registers as an honest agent does, with a client that has the values' access, and returns the granted
// registration and the key of its certificate.
func Join(t testing.TB, asking client.Client, request *fleet.ClusterRegistration) (granted *fleet.ClusterRegistration, key []byte) {
	t.Helper()
	registration := Ask(t, asking, request)
	if registration.Status.State != fleet.RegistrationApproved {
		t.Fatalf("not approved: %+v", registration.Status)
	}
	csr, key := NewCSR(t, *registration.Status.Identity, nil)
	if registration = Submit(t, asking, registration, csr); registration.Status.State != fleet.RegistrationGranted {
		t.Fatalf("not granted: %+v", registration.Status)
	}
	return registration, key
}

// Ask creates a registration and returns it once the hub has said whose name its certificate request has to bear, or
// has rejected it.
func Ask(t testing.TB, asking client.Client, registration *fleet.ClusterRegistration) *fleet.ClusterRegistration {
	t.Helper()
	if err := asking.Create(t.Context(), registration); err != nil {
		t.Fatal(err)
	}
	return Follow(t, asking, registration, func(r *fleet.ClusterRegistration) bool {
		return r.Status.Identity != nil || Decided(r)
	})
}

// Submit adds a certificate request to an approved registration and returns it once it is decided.
func Submit(t testing.TB, asking client.Client, registration *fleet.ClusterRegistration, csr []byte) *fleet.ClusterRegistration {
	t.Helper()
	before := registration.DeepCopy()
	registration.Spec.CSR = csr
	if err := asking.Patch(t.Context(), registration, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	return Follow(t, asking, registration, Decided)
}

// Decided says whether the hub has granted or rejected a registration.
func Decided(registration *fleet.ClusterRegistration) bool {
	return registration.Status.Granted || registration.Status.State == fleet.RegistrationRejected
}

// Follow reads a registration with the rights of its agent until it is as wanted.
func Follow(t testing.TB, asking client.Client, registration *fleet.ClusterRegistration, done func(*fleet.ClusterRegistration) bool) *fleet.ClusterRegistration {
	t.Helper()
	kubetest.Eventually(t, "registration "+registration.Name+" is answered", func(ctx context.Context) error {
		if err := asking.Get(ctx, client.ObjectKeyFromObject(registration), registration); err != nil {
			return err // forbidden until the hub has granted it
		}
		if !done(registration) {
			return fmt.Errorf("status is %+v", registration.Status)
		}
		return nil
	})
	return registration
}

// NewCSR returns a certificate request for an identity, after change had its way with it, and its key, both in PEM. A
// nil change changes nothing.
func NewCSR(t testing.TB, identity fleet.AgentIdentity, change func(*x509.CertificateRequest)) (request, key []byte) {
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
