package join

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

var (
	noon     = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	identity = Identity("cluster-ns", "")
)

func request(t testing.TB, template x509.CertificateRequest, key crypto.Signer) []byte {
	t.Helper()
	if key == nil {
		made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		key = made
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: csrBlock, Bytes: der})
}

func subject() pkix.Name {
	return pkix.Name{CommonName: identity.User, Organization: slices.Clone(identity.Groups)}
}

func TestCheckCSR(t *testing.T) {
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	weakKey, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := request(t, x509.CertificateRequest{Subject: subject()}, nil)
	block, _ := pem.Decode(good)
	tampered := slices.Clone(block.Bytes)
	tampered[len(tampered)-1] ^= 1
	with := func(change func(*x509.CertificateRequest)) []byte {
		template := x509.CertificateRequest{Subject: subject()}
		change(&template)
		return request(t, template, nil)
	}
	reversed := subject()
	slices.Reverse(reversed.Organization)
	cases := map[string]struct {
		csr  []byte
		want string // part of the refusal; empty: accepted
	}{
		"ECDSA":                 {good, ""},
		"Ed25519":               {request(t, x509.CertificateRequest{Subject: subject()}, edKey), ""},
		"RSA":                   {request(t, x509.CertificateRequest{Subject: subject()}, rsaKey), ""},
		"groups in other order": {request(t, x509.CertificateRequest{Subject: reversed}, nil), ""},
		"nothing":               {nil, "PEM"},
		"two blocks":            {append(slices.Clone(good), good...), "PEM"},
		"a certificate's block": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}), "PEM"},
		"no ASN.1":              {pem.EncodeToMemory(&pem.Block{Type: csrBlock, Bytes: []byte("x")}), "refused"},
		"huge":                  {append(slices.Clone(good), make([]byte, maxCSRBytes)...), "bytes"},
		"signature broken":      {pem.EncodeToMemory(&pem.Block{Type: csrBlock, Bytes: tampered}), "signature"},
		"weak key":              {request(t, x509.CertificateRequest{Subject: subject()}, weakKey), "224 bits"},
		"another user":          {with(func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:admin" }), "common name"},
		"a group more":          {with(func(r *x509.CertificateRequest) { r.Subject.Organization = append(r.Subject.Organization, "x") }), "organizations"},
		"a group fewer":         {with(func(r *x509.CertificateRequest) { r.Subject.Organization = r.Subject.Organization[:1] }), "organizations"},
		"a group twice":         {with(func(r *x509.CertificateRequest) { r.Subject.Organization[1] = r.Subject.Organization[0] }), "organizations"},
		"a unit":                {with(func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"x"} }), "subject"},
		"a UID (user of others)": {with(func(r *x509.CertificateRequest) {
			r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: "u"}}
		}), "subject"},
		"a DNS name": {with(func(r *x509.CertificateRequest) { r.DNSNames = []string{"hub"} }), "alternative"},
		"a headline": {append([]byte("x\n"), good...), "PEM"},
		"a header":   {pem.EncodeToMemory(&pem.Block{Type: csrBlock, Headers: map[string]string{"a": "b"}, Bytes: block.Bytes}), "PEM"},
		"an authority": {with(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}}}
		}), "extension 2.5.29.19"},
		"a usage": {with(func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 15}, Value: []byte{3, 2, 2, 4}}}
		}), "extension 2.5.29.15"},
		"a name of another kind": {with(func(r *x509.CertificateRequest) { // [0] otherName
			r.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Value: []byte{0x30, 9, 0xa0, 7, 6, 1, 42, 0xa0, 2, 5, 0}}}
		}), "extension 2.5.29.17"},
		"an address": {with(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(1, 2, 3, 4)} }), "alternative"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckCSR(c.csr, identity)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || fault.ClassOf(err) != fault.Denied || fault.ReasonOf(err) != ReasonInvalidCSR {
				t.Errorf("got %v, want a denial with %q", err, c.want)
			}
		})
	}
}

// Whatever comes, what is accepted names the identity and nothing else.
func FuzzCheckCSR(f *testing.F) {
	f.Add(request(f, x509.CertificateRequest{Subject: subject()}, nil))
	f.Add(request(f, x509.CertificateRequest{Subject: pkix.Name{CommonName: "x"}}, nil))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, csr []byte) {
		if CheckCSR(csr, identity) != nil {
			return
		}
		block, _ := pem.Decode(csr)
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil || parsed.Subject.CommonName != identity.User || len(parsed.Subject.Names) != 3 {
			t.Errorf("accepted %v, %v", parsed, err)
		}
	})
}

func token(ttl time.Duration) *fleet.ClusterRegistrationToken {
	made := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ws", Name: "join", UID: "u-1", CreationTimestamp: metav1.NewTime(noon),
	}}
	if ttl >= 0 {
		made.Spec.TTL = &fleet.Duration{Duration: ttl}
	}
	return made
}

func TestCheckToken(t *testing.T) {
	labelled := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Labels: map[string]string{fleet.RegistrationTokenLabel: "join"}}}
	deleted := token(time.Hour)
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	cases := map[string]struct {
		registration *fleet.ClusterRegistration
		token        *fleet.ClusterRegistrationToken
		after        time.Duration
		want         string
	}{
		"valid":             {labelled, token(time.Hour), time.Hour - 1, ""},
		"expired":           {labelled, token(time.Hour), time.Hour, ReasonTokenExpired},
		"without TTL":       {labelled, token(-1), 1000 * time.Hour, ""},
		"TTL 0 is for ever": {labelled, token(0), 1000 * time.Hour, ""},
		"none":              {labelled, nil, 0, ReasonTokenInvalid},
		"being deleted":     {labelled, deleted, 0, ReasonTokenInvalid},
		"no label":          {&fleet.ClusterRegistration{}, token(time.Hour), 0, ReasonTokenInvalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := CheckToken(c.registration, c.token, noon.Add(c.after))
			if c.want == "" && err != nil || c.want != "" && (fault.ReasonOf(err) != c.want || fault.ClassOf(err) != fault.Denied) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestSuperseded(t *testing.T) {
	made := func(name string, second int, state fleet.RegistrationState, client string) fleet.ClusterRegistration {
		return fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(second) * time.Second))},
			Spec:       fleet.ClusterRegistrationSpec{ClientID: client},
			Status:     fleet.ClusterRegistrationStatus{State: state, Granted: state == fleet.RegistrationGranted},
		}
	}
	others := []fleet.ClusterRegistration{
		made("old-granted", 0, fleet.RegistrationGranted, "c"),
		made("old-pending", 1, fleet.RegistrationPending, "c"),
		made("old-rejected", 2, fleet.RegistrationRejected, "c"),
		made("same-second-rejected", 5, fleet.RegistrationRejected, "c"),
		made("same-second-granted", 5, fleet.RegistrationGranted, "c"),
		made("same-second-approved", 5, fleet.RegistrationApproved, "c"),
		made("newer", 6, fleet.RegistrationPending, "c"),
		made("other-client", 0, fleet.RegistrationGranted, "d"),
		made("other-cluster", 0, fleet.RegistrationGranted, "c"), // self has changed its clientID to another's
	}
	others[len(others)-1].Status.ClusterName = "victim"
	cases := map[fleet.RegistrationState][]string{
		fleet.RegistrationGranted:  {"old-granted", "old-pending", "old-rejected", "same-second-rejected"},
		fleet.RegistrationRejected: {"old-rejected"},
	}
	for state, want := range cases {
		self := made("self", 5, state, "c")
		var got []string
		for _, old := range Superseded(&self, append(others, self)) {
			got = append(got, old.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s supersedes %v, want %v", state, got, want)
		}
	}
}

func TestForRegistration(t *testing.T) {
	registration := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "ws"}, Spec: fleet.ClusterRegistrationSpec{
		ClientID: "client", ClusterLabels: map[string]string{"env": "dev", "fleet.cattle.io/managed": "true"},
	}}
	made := ForRegistration(registration, false)
	if made.Spec.ClientID != "client" || made.Labels["env"] != "dev" || len(made.Labels) != 2 || made.Labels[fleet.ManagementNameLabel] != made.Name {
		t.Errorf("made %+v", made)
	}
	if bare := ForRegistration(registration, true); len(bare.Labels) != 1 || bare.Name != made.Name {
		t.Errorf("without labels %+v", bare)
	}
	registration.Spec.ClusterName = "meadow"
	if named := ForRegistration(registration, false); named.Name != "meadow" {
		t.Errorf("named %s", named.Name)
	}
}

func TestValues(t *testing.T) {
	cases := map[string]struct {
		namespace string
		want      string
	}{
		"usual place":   {"cattle-fleet-system", "cattle-fleet-clusters-system"},
		"another place": {"fleet", "fleet-clusters-system"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			secret, err := Values(token(time.Hour), Hub{SystemNamespace: c.namespace, APIServerURL: "https://hub", APIServerCA: []byte("PEM\n")}, "t0ken")
			if err != nil {
				t.Fatal(err)
			}
			var values map[string]any
			if err := yaml.Unmarshal(secret.Data["values"], &values); err != nil {
				t.Fatal(err)
			}
			if values["token"] != "t0ken" || values["apiServerCA"] != "PEM\n" || values["clusterNamespace"] != "ws" || values["tokenName"] != "join" || values["systemRegistrationNamespace"] != c.want {
				t.Errorf("values %v", values)
			}
			if _, told := values["internal"]; told != (c.namespace != "cattle-fleet-system") {
				t.Errorf("internal: %v", values["internal"])
			}
			if secret.Type != fleet.RegistrationValuesSecretType || secret.Name != "join" || !metav1.IsControlledBy(secret, token(0)) {
				t.Errorf("secret %v", secret.ObjectMeta)
			}
		})
	}
}

func TestTrimKeepsDecisions(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	labels := map[string]string{"": "", "env": "dev", long: "v", "v": long}
	for i := range 2 * maxClusterLabels {
		labels["l"+strings.Repeat("0", i)] = "v"
	}
	cases := map[string]struct {
		spec fleet.ClusterRegistrationSpec
		want string // part of the refusal
	}{
		"fine":       {fleet.ClusterRegistrationSpec{ClientID: "c", ClusterLabels: map[string]string{"env": "dev", long: "v", "v": long}}, ""},
		"client":     {fleet.ClusterRegistrationSpec{ClientID: long}, "clientID"},
		"random":     {fleet.ClusterRegistrationSpec{ClientID: "c", ClientRandom: long}, "clientRandom"},
		"name":       {fleet.ClusterRegistrationSpec{ClientID: "c", ClusterName: long}, "no name for a Cluster"},
		"agent":      {fleet.ClusterRegistrationSpec{ClientID: "c", AgentID: long}, "agentID"},
		"labels":     {fleet.ClusterRegistrationSpec{ClientID: "c", ClusterLabels: labels}, "labels"},
		"many agent": {fleet.ClusterRegistrationSpec{ClientID: "c", AgentID: "system:masters"}, "agentID"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			registration := &fleet.ClusterRegistration{Spec: *c.spec.DeepCopy()}
			registration.Labels = map[string]string{fleet.RegistrationTokenLabel: "t", "other": "x"}
			registration.Annotations = map[string]string{"a": long}
			registration.Spec.CSR = []byte(long)
			Trim(registration)
			size := len(registration.Spec.CSR)
			for key, value := range registration.Spec.ClusterLabels {
				size += len(key) + len(value)
			}
			if size > 64<<10 || registration.Annotations != nil || len(registration.Labels) != 1 {
				t.Errorf("%d bytes are left, annotations %v, labels %v", size, registration.Annotations, registration.Labels)
			}
			if err := CheckCSR(registration.Spec.CSR, identity); err == nil || !strings.Contains(err.Error(), "bytes") {
				t.Errorf("the request: %v", err)
			}
			err := errors.Join(CheckRequest(registration), CheckAgent(registration))
			if c.want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && len(err.Error()) > 1024 {
				t.Errorf("the refusal has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestCheckSilent(t *testing.T) {
	lease := &fleet.ClusterVersions{Protocol: 1}
	for name, c := range map[string]struct {
		status fleet.ClusterStatus
		want   bool
	}{
		"never heard":         {fleet.ClusterStatus{Phase: fleet.ClusterPending}, false},
		"missed":              {fleet.ClusterStatus{Phase: fleet.ClusterNotReady, Versions: lease}, false},
		"lost":                {fleet.ClusterStatus{Phase: fleet.ClusterUnknown, Versions: lease}, false},
		"heard":               {fleet.ClusterStatus{Phase: fleet.ClusterReady, Versions: lease}, true},
		"heard without lease": {fleet.ClusterStatus{Phase: fleet.ClusterReady}, false},
	} {
		err := CheckSilent(&fleet.Cluster{Status: c.status})
		if got := fault.ReasonOf(err) == ReasonClusterInUse; got != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
