package cluster

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/enroll"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster/controller"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

func TestJoin(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{})
	workspace := h.workspace(t)
	v := h.token(t, workspace, "join", time.Hour)
	other := wait(t, h, createdCluster(t, h, workspace, "other"), "has a namespace", hasNamespace)
	agent := h.join(t, v, "client-1")

	var made fleet.Cluster
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: workspace, Name: agent.clusterName}, &made); err != nil {
		t.Fatal(err)
	}
	wantLabels := map[string]string{"env": "dev", fleet.AgentPodLabel: "fleet-agent-0", fleet.ManagementNameLabel: made.Name}
	if fmt.Sprint(made.Labels) != fmt.Sprint(wantLabels) {
		t.Errorf("labels %v, want %v", made.Labels, wantLabels)
	}
	if made.Name != names.ClusterForClient("client-1") || made.Spec.ClientID != "client-1" {
		t.Errorf("Cluster %s of client %q", made.Name, made.Spec.ClientID)
	}
	checkCertificate(t, agent.registration)
	content := &fleet.Content{ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}}
	h.create(t, content)

	attempts{
		"list its deployments": func(ctx context.Context) error {
			return agent.client.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(agent.namespace))
		},
		"get a content": func(ctx context.Context) error {
			return agent.client.Get(ctx, client.ObjectKeyFromObject(content), &fleet.Content{})
		},
	}.mustSucceed(t)
	mayNot := map[string]error{
		"list another cluster's deployments": agent.client.List(t.Context(), &fleet.BundleDeploymentList{}, client.InNamespace(other.Status.Namespace)),
		"list all deployments":               agent.client.List(t.Context(), &fleet.BundleDeploymentList{}),
		"list contents":                      agent.client.List(t.Context(), &fleet.ContentList{}),
		"list its Secrets":                   agent.client.List(t.Context(), &corev1.SecretList{}, client.InNamespace(agent.namespace)),
		"read its Cluster":                   agent.client.Get(t.Context(), client.ObjectKeyFromObject(&made), &fleet.Cluster{}),
		"list registrations":                 agent.client.List(t.Context(), &fleet.ClusterRegistrationList{}, client.InNamespace(workspace)),
		"ask in another cluster's namespace": agent.client.Create(t.Context(), &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: other.Status.Namespace, Name: "x"}}),
	}
	token := h.as(t, v.Config())
	mayNot["token: list registrations"] = token.List(t.Context(), &fleet.ClusterRegistrationList{}, client.InNamespace(workspace))
	mayNot["token: list clusters"] = token.List(t.Context(), &fleet.ClusterList{}, client.InNamespace(workspace))
	mayNot["token: write status"] = token.Status().Update(t.Context(), agent.registration)
	for what, err := range mayNot {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want forbidden", what, err)
		}
	}
	kubetest.Eventually(t, "the signing request is gone", func(ctx context.Context) error {
		err := h.client.Get(ctx, client.ObjectKey{Name: agent.registration.Status.CSRName}, &certificatesv1.CertificateSigningRequest{})
		if !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}

func createdCluster(t *testing.T, h *hub, namespace, name string) *fleet.Cluster {
	t.Helper()
	c := newCluster(namespace, name, "client-of-"+name)
	h.create(t, c)
	return c
}

func checkCertificate(t *testing.T, registration *fleet.ClusterRegistration) {
	t.Helper()
	block, _ := pem.Decode(registration.Status.Certificate)
	if block == nil {
		t.Fatal("no certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if certificate.Subject.CommonName != registration.Status.Identity.User {
		t.Errorf("common name %q", certificate.Subject.CommonName)
	}
	if !registration.Status.CertificateExpires.Time.Equal(certificate.NotAfter) {
		t.Errorf("expires %v, want %v", registration.Status.CertificateExpires, certificate.NotAfter)
	}
	if life := certificate.NotAfter.Sub(certificate.NotBefore); life > 91*24*time.Hour {
		t.Errorf("the certificate lives %v", life)
	}
}

func TestJoinAgain(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{})
	workspace := h.workspace(t)
	v := h.token(t, workspace, "join", time.Hour)
	first := h.join(t, v, "client-1")
	later(t, first.registration)
	second := h.join(t, v, "client-1")
	if first.clusterName != second.clusterName || first.namespace != second.namespace {
		t.Errorf("one client got %s and %s", first.clusterName, second.clusterName)
	}
	kubetest.Eventually(t, "the first registration is gone", func(ctx context.Context) error {
		var all fleet.ClusterRegistrationList
		if err := h.client.List(ctx, &all, client.InNamespace(workspace)); err != nil {
			return err
		}
		if len(all.Items) != 1 || all.Items[0].Name != second.registration.Name {
			return fmt.Errorf("there are %d", len(all.Items))
		}
		return nil
	})
}

func TestRenew(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{})
	workspace := h.workspace(t)
	v := h.token(t, workspace, "join", time.Hour)
	agent := h.join(t, v, "client-1")
	victim := h.join(t, v, "client-2")

	renew := func(identity fleet.AgentIdentity) (*fleet.ClusterRegistration, []byte) {
		csr, key := enroll.NewCSR(t, identity, nil)
		registration := &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Namespace: agent.namespace, GenerateName: "renewal-"},
			Spec:       fleet.ClusterRegistrationSpec{ClientID: "client-1", ProtocolVersion: 1, AgentID: "fleet-agent", CSR: csr},
		}
		if err := agent.client.Create(t.Context(), registration); err != nil {
			t.Fatal(err)
		}
		return enroll.Follow(t, agent.client, registration, enroll.Decided), key
	}
	stolen, _ := renew(*victim.registration.Status.Identity)
	if stolen.Status.State != fleet.RegistrationRejected || stolen.Status.Reason != "InvalidCSR" {
		t.Errorf("an agent asked for another's identity and got %+v", stolen.Status)
	}
	registration, key := renew(*agent.registration.Status.Identity)
	renewed := h.identify(t, v, registration, key)
	if err := renewed.client.List(t.Context(), &fleet.BundleDeploymentList{}, client.InNamespace(agent.namespace)); err != nil {
		t.Errorf("the renewed certificate: %v", err)
	}
	kubetest.Eventually(t, "the refused registration is gone", func(ctx context.Context) error {
		err := h.client.Get(ctx, client.ObjectKeyFromObject(stolen), &fleet.ClusterRegistration{})
		if !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}

func TestRejected(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{})
	workspace := h.workspace(t)
	v := h.token(t, workspace, "join", time.Hour)
	h.create(t, newCluster(workspace, "taken", "somebody"))
	h.create(t, newCluster(workspace, "unclaimed", ""))

	cases := map[string]struct {
		change     func(*fleet.ClusterRegistration)
		csr        func(fleet.AgentIdentity) []byte
		wantReason string
		wantText   string
	}{
		"no token":               {change: func(r *fleet.ClusterRegistration) { r.Labels = nil }, wantReason: "TokenInvalid", wantText: "names no token"},
		"unknown token":          {change: func(r *fleet.ClusterRegistration) { r.Labels[fleet.RegistrationTokenLabel] = "gone" }, wantReason: "TokenInvalid", wantText: `"gone"`},
		"no client":              {change: func(r *fleet.ClusterRegistration) { r.Spec.ClientID = "" }, wantReason: "IdentityMismatch", wantText: "clientID"},
		"another client's name":  {change: func(r *fleet.ClusterRegistration) { r.Spec.ClusterName = "taken" }, wantReason: "IdentityMismatch", wantText: "another client"},
		"name of a bare Cluster": {change: func(r *fleet.ClusterRegistration) { r.Spec.ClusterName = "unclaimed" }, wantReason: "IdentityMismatch", wantText: "no clientID"},
		"agent with a colon":     {change: func(r *fleet.ClusterRegistration) { r.Spec.AgentID = "a:b" }, wantReason: "IdentityMismatch", wantText: "agentID"},
		"another user": {csr: func(i fleet.AgentIdentity) []byte {
			csr, _ := enroll.NewCSR(t, fleet.AgentIdentity{User: "system:admin", Groups: i.Groups}, nil)
			return csr
		}, wantReason: "InvalidCSR", wantText: "system:admin"},
		"one group more": {csr: func(i fleet.AgentIdentity) []byte {
			csr, _ := enroll.NewCSR(t, fleet.AgentIdentity{User: i.User, Groups: append(i.Groups, "system:masters")}, nil)
			return csr
		}, wantReason: "InvalidCSR", wantText: "system:masters"},
		"no request": {csr: func(fleet.AgentIdentity) []byte { return []byte("x") }, wantReason: "InvalidCSR", wantText: "PEM"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			registration := v.request("client " + name)
			if c.change != nil {
				c.change(registration)
			}
			answered := enroll.Ask(t, h.client, registration)
			if c.csr != nil {
				answered = enroll.Submit(t, h.client, answered, c.csr(*answered.Status.Identity))
			}
			s := answered.Status
			if s.State != fleet.RegistrationRejected || s.Reason != c.wantReason || !strings.Contains(s.Message, c.wantText) {
				t.Errorf("got %s, %s: %s; want %s with %q", s.State, s.Reason, s.Message, c.wantReason, c.wantText)
			}
			if s.Granted || len(s.Certificate) > 0 {
				t.Error("granted")
			}
		})
	}
}

func TestTokenExpires(t *testing.T) {
	h := getHub(t)
	clock := h.run(t, controller.Options{TokenRetention: 24 * time.Hour})
	workspace := h.workspace(t)
	v := h.token(t, workspace, "short", time.Hour)
	endless := h.token(t, workspace, "endless", 0)
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "short"}}

	clock.advance(2 * time.Hour)
	touch(t, h, token)
	wait(t, h, token, "has expired", func(c *fleet.ClusterRegistrationToken) error {
		if c.Status.SecretName != "" || c.Status.Expires == nil {
			return fmt.Errorf("status %+v", c.Status)
		}
		return nil
	})
	kubetest.Eventually(t, "the token is refused", func(ctx context.Context) error {
		err := h.as(t, v.Config()).Create(ctx, v.request("client-1"))
		if !apierrors.IsUnauthorized(err) {
			return errors.Join(errors.New("it is accepted"), err)
		}
		return nil
	})
	if s := enroll.Ask(t, h.client, v.request("client-1")).Status; s.Reason != "TokenExpired" {
		t.Errorf("a registration with the expired token got %+v", s)
	}
	h.join(t, endless, "client-2")

	clock.advance(24 * time.Hour)
	touch(t, h, token)
	kubetest.Eventually(t, "the token is gone", func(ctx context.Context) error {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(token), token); !apierrors.IsNotFound(err) {
			return errors.New("it is there")
		}
		return nil
	})
}

func TestTokenWithoutTTLIsDeleted(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{RequireTokenTTL: true})
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: h.workspace(t), Name: "endless"}}
	h.create(t, token)
	kubetest.Eventually(t, "the token is gone", func(ctx context.Context) error {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(token), token); !apierrors.IsNotFound(err) {
			return errors.New("it is there")
		}
		return nil
	})
}

// touch makes the controllers look at an object again after the clock was moved. It may be gone by then: any event has
// them look.
func touch(t *testing.T, h *hub, object client.Object) {
	t.Helper()
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		if !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return
	}
	before := object.DeepCopyObject().(client.Object)
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations["touched"] += "x"
	object.SetAnnotations(annotations)
	if err := client.IgnoreNotFound(h.client.Patch(t.Context(), object, client.MergeFrom(before))); err != nil {
		t.Fatal(err)
	}
}
