package join

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

const (
	// CertificateLifetime of an agent's identity. A signer may give less.
	CertificateLifetime = 90 * 24 * time.Hour

	// RegistrationAnnotation leads from what was made for a registration back to it.
	RegistrationAnnotation = "fleet.cattle.io/cluster-registration"
	// RegistrationNamespaceAnnotation is that registration's namespace.
	RegistrationNamespaceAnnotation = "fleet.cattle.io/cluster-registration-namespace"

	csrBlock        = "CERTIFICATE REQUEST"
	certBlock       = "CERTIFICATE"
	maxCSRBytes     = 16 << 10
	minRSABits      = 2048
	maxRSABits      = 8192
	minEllipticBits = 256
)

// CheckCSR refuses a certificate request that asks for anything but the identity: exactly its user as
// common name and its groups as organizations, no further subject and no extensions (alternative names of
// any kind, usages, an authority: a signer may honour them), one PEM block and nothing beside it, signed with its own key, of a kind and size worth trusting.
func CheckCSR(request []byte, identity *fleet.AgentIdentity) error {
	if len(request) > maxCSRBytes {
		return badCSR("it has %d bytes, more than %d", len(request), maxCSRBytes)
	}
	block, rest := pem.Decode(request)
	alone := bytes.HasPrefix(bytes.TrimSpace(request), []byte("-----BEGIN "+csrBlock)) && len(bytes.TrimSpace(rest)) == 0
	if block == nil || block.Type != csrBlock || len(block.Headers) > 0 || !alone {
		return badCSR("it is not exactly one PEM block of type %s", csrBlock)
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return badCSR("%v", err)
	}
	if err := csr.CheckSignature(); err != nil {
		return badCSR("its signature does not match its key")
	}
	if err := checkSubject(csr, identity); err != nil {
		return err
	}
	return checkKey(csr.PublicKey)
}

// CheckKey refuses a registration that is named after its key (names.KeyedRegistration) and asks for anything
// but a certificate for that key. All who have the registration's token can change what it says.
func CheckKey(registration *fleet.ClusterRegistration) error {
	if !names.IsKeyedRegistration(registration.Name) {
		return nil
	}
	if registration.Spec.ProtocolVersion < 1 {
		return fault.New(fault.Denied, ReasonVersionIncompatible, "the registration is named after a key and yields nothing but a certificate for it")
	}
	block, _ := pem.Decode(registration.Spec.CSR)
	if block == nil {
		return nil // none yet, or none that CheckCSR takes
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err == nil && names.KeyedRegistration(csr.RawSubjectPublicKeyInfo) != registration.Name {
		return badCSR("it is for another key than the registration is named after: somebody else who has the token may have written it")
	}
	return nil
}

func checkSubject(csr *x509.CertificateRequest, identity *fleet.AgentIdentity) error {
	if csr.Subject.CommonName != identity.User {
		return badCSR("its common name is %q, not %q", csr.Subject.CommonName, identity.User)
	}
	got, want := slices.Sorted(slices.Values(csr.Subject.Organization)), slices.Sorted(slices.Values(identity.Groups))
	if !slices.Equal(got, want) {
		return badCSR("its organizations are %q, not %q", got, want)
	}
	if len(csr.Subject.Names) != 1+len(want) {
		return badCSR("its subject names more than user and groups")
	}
	if len(csr.DNSNames)+len(csr.IPAddresses)+len(csr.EmailAddresses)+len(csr.URIs) > 0 {
		return badCSR("it asks for alternative names")
	}
	if len(csr.Extensions) > 0 {
		return badCSR("it asks for extension %s", csr.Extensions[0].Id)
	}
	return nil
}

func checkKey(key any) error {
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		if bits := key.Params().BitSize; bits < minEllipticBits {
			return badCSR("its elliptic key has %d bits, less than %d", bits, minEllipticBits)
		}
	case ed25519.PublicKey:
	case *rsa.PublicKey:
		if bits := key.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return badCSR("its RSA key has %d bits, not %d to %d", bits, minRSABits, maxRSABits)
		}
	default:
		return badCSR("its key is of a kind that is not accepted")
	}
	return nil
}

func badCSR(format string, args ...any) error {
	return fault.New(fault.Denied, ReasonInvalidCSR, "the certificate request is refused: "+format, args...)
}

// SigningRequest returns the request by which the hub's API server signs a registration's certificate.
func SigningRequest(registration *fleet.ClusterRegistration) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name:   names.SafeConcat("fleet", string(registration.UID)),
			Labels: managed(),
			Annotations: map[string]string{
				RegistrationAnnotation:          registration.Name,
				RegistrationNamespaceAnnotation: registration.Namespace,
			},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           registration.Spec.CSR,
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			ExpirationSeconds: ptr.To(int32(CertificateLifetime / time.Second)),
		},
	}
}

// SameRequest says whether a stored request asks for what wanted asks for.
func SameRequest(stored, wanted *certificatesv1.CertificateSigningRequest) bool {
	return stored.Spec.SignerName == wanted.Spec.SignerName &&
		bytes.Equal(stored.Spec.Request, wanted.Spec.Request) &&
		slices.Equal(stored.Spec.Usages, wanted.Spec.Usages)
}

// SigningRefused returns why a signing request will never get a certificate, or nil while it may.
func SigningRefused(request *certificatesv1.CertificateSigningRequest) error {
	for _, condition := range request.Status.Conditions {
		if condition.Type == certificatesv1.CertificateDenied || condition.Type == certificatesv1.CertificateFailed {
			return fault.New(fault.Denied, ReasonInvalidCSR, "the API server's signer refused the certificate request (%s): %s", condition.Type, condition.Message)
		}
	}
	return nil
}

// Approved says whether somebody has approved a signing request.
func Approved(request *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateApproved
	})
}

// CertificateEnd returns when the first certificate of a PEM chain ends.
func CertificateEnd(chain []byte) (time.Time, error) {
	block, _ := pem.Decode(chain)
	if block == nil || block.Type != certBlock {
		return time.Time{}, fault.New(fault.Transient, "BadCertificate", "the signer's answer holds no certificate")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, fault.New(fault.Transient, "BadCertificate", "read the signed certificate: %w", err)
	}
	return certificate.NotAfter, nil
}
