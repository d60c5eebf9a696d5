package security

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/enroll"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// renew asks in the agent's own namespace.
func (a *agent) renew(change func(*fleet.ClusterRegistration)) *fleet.ClusterRegistration {
	a.h.t.Helper()
	registration := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, GenerateName: "renewal-"}}
	registration.Spec = fleet.ClusterRegistrationSpec{ProtocolVersion: 1, AgentID: "fleet-agent"}
	registration.Spec.CSR, _ = enroll.NewCSR(a.h.t, *a.registration.Status.Identity, nil)
	change(registration)
	if err := a.client.Create(a.h.t.Context(), registration); err != nil {
		a.h.t.Fatal(err)
	}
	return enroll.Follow(a.h.t, a.client, registration, enroll.Decided)
}

func TestNoOtherIdentity(t *testing.T) {
	h := getHub(t)
	workspace := h.workspace()
	k := h.token(workspace, "join")
	own, victim := k.join("own"), k.join("victim")
	identity := *own.registration.Status.Identity
	csr := func(change func(*x509.CertificateRequest)) func(*fleet.ClusterRegistration) {
		return func(r *fleet.ClusterRegistration) { r.Spec.CSR, _ = enroll.NewCSR(t, identity, change) }
	}
	extension := func(value []byte, id ...int) func(*fleet.ClusterRegistration) {
		return csr(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier(id), Value: value}}
		})
	}
	for name, c := range map[string]struct {
		change func(*fleet.ClusterRegistration)
		want   string // the reason
	}{
		"masters": {csr(func(r *x509.CertificateRequest) {
			r.Subject.Organization = append(r.Subject.Organization, "system:masters")
		}), "InvalidCSR"},
		"only masters":  {csr(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} }), "InvalidCSR"},
		"administrator": {csr(func(r *x509.CertificateRequest) { r.Subject.CommonName = "kubernetes-admin" }), "InvalidCSR"},
		"the hub": {csr(func(r *x509.CertificateRequest) {
			r.Subject.CommonName = "system:serviceaccount:" + systemNamespace + ":fleet-controller"
		}), "InvalidCSR"},
		"the victim": {func(r *fleet.ClusterRegistration) {
			r.Spec.CSR, _ = enroll.NewCSR(t, *victim.registration.Status.Identity, nil)
		}, "InvalidCSR"},
		"the victim's group too": {csr(func(r *x509.CertificateRequest) {
			r.Subject.Organization = append(r.Subject.Organization, names.AgentGroup(victim.namespace))
		}), "InvalidCSR"},
		"a node": {csr(func(r *x509.CertificateRequest) {
			r.Subject = pkix.Name{CommonName: "system:node:x", Organization: []string{"system:nodes"}}
		}), "InvalidCSR"},
		"a name of the API server": {csr(func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes.default.svc"} }), "InvalidCSR"},
		"an address":               {csr(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }), "InvalidCSR"},
		"an authority":             {extension([]byte{0x30, 3, 1, 1, 0xff}, 2, 5, 29, 19), "InvalidCSR"},
		"signing certificates":     {extension([]byte{3, 2, 2, 4}, 2, 5, 29, 15), "InvalidCSR"},
		"serving":                  {extension([]byte{0x30, 10, 6, 8, 43, 6, 1, 5, 5, 7, 3, 1}, 2, 5, 29, 37), "InvalidCSR"},
		"a UID": {csr(func(r *x509.CertificateRequest) {
			r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: "u"}}
		}), "InvalidCSR"},
		"a serial number":           {csr(func(r *x509.CertificateRequest) { r.Subject.SerialNumber = "1" }), "InvalidCSR"},
		"two requests":              {func(r *fleet.ClusterRegistration) { r.Spec.CSR = append(r.Spec.CSR, r.Spec.CSR...) }, "InvalidCSR"},
		"a huge request":            {func(r *fleet.ClusterRegistration) { r.Spec.CSR = make([]byte, 400<<10) }, "InvalidCSR"},
		"garbage":                   {func(r *fleet.ClusterRegistration) { r.Spec.CSR = []byte("\x00\xff") }, "InvalidCSR"},
		"an agent with a separator": {func(r *fleet.ClusterRegistration) { r.Spec.AgentID = "x:y" }, "IdentityMismatch"},
		"an agent with a path":      {func(r *fleet.ClusterRegistration) { r.Spec.AgentID = "../x" }, "IdentityMismatch"},
		"an agent with a long name": {func(r *fleet.ClusterRegistration) { r.Spec.AgentID = strings.Repeat("a", 300<<10) }, "IdentityMismatch"},
		"the victim's client":       {func(r *fleet.ClusterRegistration) { r.Spec.ClientID = "victim" }, "IdentityMismatch"},
		"an account":                {func(r *fleet.ClusterRegistration) { r.Spec.ProtocolVersion = 0 }, "VersionIncompatible"},
		"another key": {func(r *fleet.ClusterRegistration) {
			r.GenerateName, r.Name = "", names.KeyedRegistration([]byte("a key"))
		}, "InvalidCSR"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := own.renew(c.change).Status
			if answer.State != fleet.RegistrationRejected || answer.Reason != c.want || answer.Granted || len(answer.Certificate) > 0 {
				t.Errorf("got %s, %s: %s; want it rejected as %s", answer.State, answer.Reason, answer.Message, c.want)
			}
			if len(answer.Message) > 4096 {
				t.Errorf("the message has %d bytes", len(answer.Message))
			}
		})
	}
	// What it says of the Cluster's name is of no effect, and an answer of its own making is dropped.
	answer := own.renew(func(r *fleet.ClusterRegistration) {
		r.Spec.ClusterName = victim.cluster.Name
		r.Status = fleet.ClusterRegistrationStatus{
			State: fleet.RegistrationApproved, Identity: victim.registration.Status.Identity, ClusterNamespace: victim.namespace,
		}
	}).Status
	if !answer.Granted || answer.ClusterNamespace != own.namespace || answer.Identity.User != identity.User {
		t.Errorf("got %+v", answer)
	}
	block, _ := pem.Decode(answer.Certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if certificate.IsCA || len(certificate.ExtKeyUsage) != 1 || certificate.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth || certificate.KeyUsage&x509.KeyUsageCertSign != 0 {
		t.Errorf("certificate for %v, %v, authority %v", certificate.KeyUsage, certificate.ExtKeyUsage, certificate.IsCA)
	}
	var requests certificatesv1.CertificateSigningRequestList
	if err := h.client.List(t.Context(), &requests); err != nil {
		t.Fatal(err)
	}
	for _, request := range requests.Items {
		if request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
			t.Errorf("the hub asked signer %s", request.Spec.SignerName)
		}
	}
}

func TestReservedLabels(t *testing.T) {
	h := getHub(t)
	k := h.token(h.workspace(), "join")
	request := k.Request("own")
	request.Spec.ClusterLabels = map[string]string{
		"env": "dev", "fleet.cattle.io/managed": "true", "management.cattle.io/cluster-name": "local", "management.cattle.io/cluster-display-name": "local",
		fleet.RepoLabel: "x", "sub.fleet.cattle.io/x": "y", "no label at all": "x", "long": strings.Repeat("x", 100<<10), strings.Repeat("k", 100<<10): "x",
	}
	name := k.ask(request).Status.ClusterName
	made := wait(h, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: k.ClusterNamespace, Name: name}}, "is there", func(*fleet.Cluster) error { return nil })
	if want := map[string]string{"env": "dev", fleet.ManagementNameLabel: name}; fmt.Sprint(made.Labels) != fmt.Sprint(want) {
		t.Errorf("labels %v, want %v", made.Labels, want)
	}
}

// A clientID is no secret: knowing one must not be enough to take the place of an agent that is there.
func TestLivingAgentKeepsItsCluster(t *testing.T) {
	h := getHub(t)
	k := h.token(h.workspace(), "join")
	victim := k.join("victim")
	victim.live()
	for name, c := range map[string]struct {
		change func(*fleet.ClusterRegistration)
		want   string
	}{
		"its client":                {func(*fleet.ClusterRegistration) {}, "ClusterInUse"},
		"another agent of its":      {func(r *fleet.ClusterRegistration) { r.Spec.AgentID = "second" }, "ClusterInUse"},
		"an account":                {func(r *fleet.ClusterRegistration) { r.Spec.ProtocolVersion = 0 }, "ClusterInUse"},
		"its name, another client":  {func(r *fleet.ClusterRegistration) { r.Spec.ClientID, r.Spec.ClusterName = "other", victim.cluster.Name }, "IdentityMismatch"},
		"a replay of its own words": {func(r *fleet.ClusterRegistration) { r.Spec = *victim.registration.Spec.DeepCopy() }, "ClusterInUse"},
	} {
		t.Run(name, func(t *testing.T) {
			request := k.Request("victim")
			c.change(request)
			if answer := k.ask(request).Status; answer.State != fleet.RegistrationRejected || answer.Reason != c.want {
				t.Errorf("got %s, %s: %s", answer.State, answer.Reason, answer.Message)
			}
		})
	}
	if err := victim.client.List(t.Context(), &fleet.BundleDeploymentList{}, client.InNamespace(victim.namespace)); err != nil {
		t.Errorf("the victim: %v", err)
	}
}

// Whoever shares a token can read and change what others registered with it. The key is in the name.
func TestSharedTokenDoesNotShareCertificates(t *testing.T) {
	h := getHub(t)
	k := h.token(h.workspace(), "join")
	for name, change := range map[string]func(*fleet.ClusterRegistration) map[string]any{
		"another key": func(r *fleet.ClusterRegistration) map[string]any {
			stolen, _ := enroll.NewCSR(t, *r.Status.Identity, nil)
			return map[string]any{"csr": stolen}
		},
		"an account in place of a certificate": func(*fleet.ClusterRegistration) map[string]any { return map[string]any{"protocolVersion": 0} },
	} {
		t.Run(name, func(t *testing.T) {
			request := k.Request("victim " + name)
			request.GenerateName, request.Name = "", names.KeyedRegistration([]byte(name))
			answer := k.ask(request)
			patch(t, k.client, answer, map[string]any{"spec": change(answer)})
			enroll.Follow(t, k.client, answer, enroll.Decided)
			if s := answer.Status; s.Granted || s.State != fleet.RegistrationRejected {
				t.Errorf("got %+v", s)
			}
			var secrets corev1.SecretList
			if err := h.client.List(t.Context(), &secrets, client.InNamespace("cattle-fleet-clusters-system")); err != nil || len(secrets.Items) > 0 {
				t.Errorf("%d credentials wait (%v)", len(secrets.Items), err)
			}
		})
	}
}

// A registration that is decided can still be changed by who made it. That reaches nobody else's.
func TestChangedRegistrationReachesNoOther(t *testing.T) {
	h := getHub(t)
	k := h.token(h.workspace(), "join")
	victim := k.join("victim")
	later(t, victim.registration)
	own := k.join("own")
	patch(t, k.client, own.registration, map[string]any{"spec": map[string]any{"clientID": "victim", "protocolVersion": 0}})
	seen := k.ask(k.Request("another")) // after which the hub has looked at the change
	wait(h, seen, "is approved", func(r *fleet.ClusterRegistration) error {
		if r.Status.Identity == nil {
			return errors.New("it is not")
		}
		return nil
	})
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(victim.registration), &fleet.ClusterRegistration{}); err != nil {
		t.Errorf("the victim's registration: %v", err)
	}
}

// later waits until what is created now is newer than an object: creation times count seconds.
func later(t *testing.T, than client.Object) {
	t.Helper()
	first := than.GetCreationTimestamp()
	kubetest.Eventually(t, "a second has passed", func(context.Context) error {
		if now := metav1.Now(); now.Unix() <= first.Unix()+1 {
			return errors.New("not yet")
		}
		return nil
	})
}

// Finalizers on what agents may write hold nothing when their Cluster goes.
func TestFinalizersHoldNothing(t *testing.T) {
	h := getHub(t)
	k := h.token(h.workspace(), "join")
	own := k.join("own")
	own.live()
	deployed := h.deployment(h.bundle(k.ClusterNamespace, "app"), own.namespace)
	patch(t, h.client, deployed, map[string]any{"metadata": map[string]any{"finalizers": []string{fleet.BundleDeploymentFinalizer}}}) // upstream's hub did

	held := []string{"evil.example/for-ever"}
	own.beat(func(lease *coordinationv1.Lease) { lease.Finalizers = held })
	patch(t, k.client, own.registration, map[string]any{"metadata": map[string]any{"finalizers": held}})
	renewal := own.renew(func(r *fleet.ClusterRegistration) { r.Finalizers = held })
	if len(renewal.Finalizers) == 0 {
		t.Fatal("the API server dropped the finalizer: this test sees nothing")
	}
	if err := h.client.Delete(t.Context(), own.cluster.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	h.gone(own.cluster)
	h.gone(deployed)
	h.gone(own.registration)
	h.gone(renewal)
	h.gone(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own.namespace}})
	if again := k.join("own"); again.namespace != own.namespace {
		t.Errorf("joined again in %s", again.namespace)
	}
}

// A name that leads to another Cluster's namespace gives no rights there, and deleting it takes nothing away.
func TestMeetingNames(t *testing.T) {
	h := getHub(t)
	k := h.token(h.workspace(), "join")
	shared := strings.Repeat("a", 40)
	victim, rogue := meeting(k.ClusterNamespace, shared)
	request := k.Request("victim")
	request.Spec.ClusterName = victim
	namespace := k.ask(request).Status.ClusterNamespace
	deployed := h.deployment(h.bundle(k.ClusterNamespace, "app"), namespace)

	request = k.Request("rogue")
	request.Spec.ClusterName = rogue
	if err := k.client.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: k.ClusterNamespace, Name: rogue}}
	wait(h, cluster, "is refused its namespace", func(c *fleet.Cluster) error {
		for _, condition := range c.Status.Conditions {
			if condition.Type == fleet.ConditionProcessed && condition.Status == corev1.ConditionFalse && c.Status.Namespace == "" {
				return nil
			}
		}
		return fmt.Errorf("status %+v", c.Status)
	})
	if err := h.client.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	h.gone(cluster)
	after := &fleet.BundleDeployment{}
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(deployed), after); err != nil || after.UID != deployed.UID {
		t.Errorf("the victim's deployment: %v, %s in place of %s", err, after.UID, deployed.UID)
	}
}

// meeting returns two names of Clusters whose namespaces have one name: long names are cut and get five
// digits of a digest.
func meeting(workspace, shared string) (one, two string) {
	seen := map[string]string{}
	for i := 0; ; i++ {
		name := fmt.Sprintf("%s-%d", shared, i)
		namespace := names.ClusterNamespace(workspace, name)
		if other, there := seen[namespace]; there {
			return other, name
		}
		seen[namespace] = name
	}
}
