package registry

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// DefaultSecret is the Secret that is used when a source names none and one of this name is beside it.
const DefaultSecret = "ocistorage"

// ReasonSecret is the reason of the error for a Secret that gives no access.
const ReasonSecret = "InvalidRegistrySecret"

// Keys of the Secret; upstream's. It knew two names for leaving out the check of certificates.
const (
	keyReference     = "reference"
	keyUsername      = "username"
	keyPassword      = "password"
	keyAgentUsername = "agentUsername"
	keyAgentPassword = "agentPassword"
	keyBasicHTTP     = "basicHTTP"
	keyInsecure      = "insecureSkipTLS"
	keyInsecureToo   = "insecure"
	keyCACerts       = "cacerts"
)

// Access is where a registry is and how to get in. It holds secrets: do not print it.
type Access struct {
	// Reference is the registry's host with the path below which artifacts are kept.
	Reference string
	// Username and Password are those of whoever asks: they may write on the hub, and need not on a member.
	Username, Password string
	// AgentUsername and AgentPassword are for agents; empty means that they use the hub's.
	AgentUsername, AgentPassword string
	// BasicHTTP talks without TLS, InsecureSkipTLS without checking certificates.
	BasicHTTP, InsecureSkipTLS bool
	// CACerts in PEM are trusted beside the system's.
	CACerts []byte
}

// AccessOf reads a Secret. Errors are of class Stalled and hold nothing of what is in it.
func AccessOf(secret *corev1.Secret) (Access, error) {
	name := secret.Namespace + "/" + secret.Name
	if secret.Type != fleet.OCIStorageSecretType {
		return Access{}, fault.New(fault.Stalled, ReasonSecret, "Secret %s is of type %q, and one for a registry is of type %s", name, secret.Type, fleet.OCIStorageSecretType)
	}
	text := func(key string) string { return string(secret.Data[key]) }
	access := Access{
		Reference: strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text(keyReference)), "oci://"), "/"),
		Username:  text(keyUsername), Password: text(keyPassword),
		AgentUsername: text(keyAgentUsername), AgentPassword: text(keyAgentPassword),
		CACerts: secret.Data[keyCACerts],
	}
	for key, into := range map[string]*bool{keyBasicHTTP: &access.BasicHTTP, keyInsecure: &access.InsecureSkipTLS, keyInsecureToo: &access.InsecureSkipTLS} {
		if text(key) == "" {
			continue
		}
		on, err := strconv.ParseBool(text(key))
		if err != nil {
			return Access{}, fault.New(fault.Stalled, ReasonSecret, "Secret %s: key %s is neither true nor false", name, key)
		}
		*into = *into || on
	}
	if access.Reference == "" {
		return Access{}, fault.New(fault.Stalled, ReasonSecret, "Secret %s: key %s, where the registry is, is missing", name, keyReference)
	}
	if _, err := access.repository("s-0"); err != nil {
		return Access{}, fault.New(fault.Stalled, ReasonSecret, "Secret %s: key %s is no registry with a path", name, keyReference)
	}
	return access, nil
}

// ForAgents returns the access that members get: with the credentials meant for them, where there are some.
func (a Access) ForAgents() Access {
	if a.AgentUsername != "" || a.AgentPassword != "" {
		a.Username, a.Password = a.AgentUsername, a.AgentPassword
	}
	return a
}

// Data returns the access as the data of a Secret.
func (a Access) Data() map[string][]byte {
	data := map[string][]byte{
		keyReference: []byte(a.Reference),
		keyUsername:  []byte(a.Username), keyPassword: []byte(a.Password),
		keyAgentUsername: []byte(a.AgentUsername), keyAgentPassword: []byte(a.AgentPassword),
		keyBasicHTTP: []byte(strconv.FormatBool(a.BasicHTTP)),
		keyInsecure:  []byte(strconv.FormatBool(a.InsecureSkipTLS)), keyInsecureToo: []byte(strconv.FormatBool(a.InsecureSkipTLS)),
	}
	if len(a.CACerts) > 0 {
		data[keyCACerts] = a.CACerts
	}
	return data
}

// Show returns where the artifact of an id is, for people.
func (a Access) Show(id string) string { return fmt.Sprintf("oci://%s/%s:%s", a.Reference, id, tag) }

// SecretFor returns the Secret beside a bundle that says where its contents are. It has the name of the
// contents, as upstream's agents expect, and is the record by which the artifact is found when nobody
// needs it any more.
func SecretFor(namespace, id, bundle string, access Access) *corev1.Secret {
	secret := &corev1.Secret{Type: fleet.OCIStorageSecretType, Data: access.Data()}
	secret.Namespace, secret.Name = namespace, id
	secret.Labels = map[string]string{fleet.InternalSecretLabel: "true"}
	if len(bundle) <= 63 {
		secret.Labels[fleet.BundleLabel] = bundle
	}
	secret.Annotations = map[string]string{ReferenceAnnotation: access.Reference}
	return secret
}

// ReferenceAnnotation repeats where the registry is, so that a cache need not hold what is in the Secret.
const ReferenceAnnotation = "fleet.cattle.io/oci-reference"

// SameData says that two Secrets hold the same.
func SameData(a, b map[string][]byte) bool {
	return maps.EqualFunc(a, b, func(x, y []byte) bool { return string(x) == string(y) })
}
