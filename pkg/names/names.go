package names

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"strings"

	"github.com/rancher/wrangler/v3/pkg/name"
)

const (
	maxReleaseName = 53
	maxObjectName  = 63
)

var (
	releaseSafe   = regexp.MustCompile(`^[a-z0-9-]+$`)
	releaseUnsafe = regexp.MustCompile(`[^a-z0-9-]+`)
	manyDashes    = regexp.MustCompile(`-+`)
	dnsLabel      = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
)

// Hex returns the first n hexadecimal digits of the MD5 of s. It names things; it protects nothing.
func Hex(s string, n int) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])[:n]
}

// Limit returns s if it is at most n bytes long; else the start of s and a digest of all of it, n bytes
// or one less.
func Limit(s string, n int) string {
	if len(s) <= n {
		return s
	}
	if n <= 6 {
		return s[:n]
	}
	start, digest := s[:n-6], Hex(s, 5)
	if strings.HasSuffix(start, "-") {
		return start + digest
	}
	return start + "-" + digest
}

// KeyHash returns 12 hexadecimal digits of the SHA-256 of the first 100 bytes of s.
func KeyHash(s string) string {
	if len(s) > 100 {
		s = s[:100]
	}
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:12]
}

// SafeConcat joins the parts with dashes and, from 64 characters on, cuts the result and adds a digest.
func SafeConcat(parts ...string) string {
	return name.SafeConcatName(parts...)
}

// HelmRelease makes a valid Helm release name (a DNS label of at most 53 characters) from any string.
// Different strings give different names: where characters are lost, a digest is added.
func HelmRelease(s string) string {
	result := strings.ReplaceAll(s, "/", "-")
	if !releaseSafe.MatchString(result) {
		result += "-" + Hex(result, 8)
		result = releaseUnsafe.ReplaceAllString(strings.ToLower(result), "-")
	}
	result = strings.Trim(manyDashes.ReplaceAllString(result, "-"), "-")
	result = Limit(result, maxReleaseName)
	if !dnsLabel.MatchString(result) {
		return Hex(s, 24)
	}
	return result
}

// Bundle returns the name of the bundle a GitRepo makes of a folder; the folder "." adds nothing.
// With a file of options that is not fleet.yaml its path in the folder, without the extension, is the
// last part.
func Bundle(repo, dir, optionsFile string) string {
	return HelmRelease(path.Join(repo, dir, strings.TrimSuffix(optionsFile, path.Ext(optionsFile))))
}

// ClusterNamespace returns the hub namespace that holds the BundleDeployments of a cluster.
func ClusterNamespace(namespace, cluster string) string {
	return SafeConcat("cluster", namespace, cluster, KeyHash(namespace+"::"+cluster))
}

// ClusterForClient returns the name of the Cluster made for an agent that names none.
func ClusterForClient(clientID string) string {
	return "cluster-" + KeyHash(clientID)
}

// RegistrationCredential returns the name of the Secret that hands an identity to an upstream agent.
func RegistrationCredential(clientID, clientRandom string) string {
	sum := sha256.Sum256([]byte(clientID + clientRandom))
	return ("c-" + hex.EncodeToString(sum[:]))[:maxObjectName]
}

// keyedRegistration is the form of a registration's name that KeyedRegistration makes.
var keyedRegistration = regexp.MustCompile(`^request-[0-9a-f]{40}$`)

// KeyedRegistration returns the name of a registration that yields a certificate for one key only, given as
// its DER (SubjectPublicKeyInfo). Whoever shares the registration's token may change what it says; its name
// nobody can change.
func KeyedRegistration(publicKey []byte) string {
	sum := sha256.Sum256(publicKey)
	return "request-" + hex.EncodeToString(sum[:])[:40]
}

// IsKeyedRegistration says whether a name is one of KeyedRegistration.
func IsKeyedRegistration(name string) bool { return keyedRegistration.MatchString(name) }

// Content returns the name of the Content for a digest in hex.
func Content(digest string) string {
	full := "s-" + digest
	return full[:min(len(full), maxObjectName)]
}

// RegistrationNamespace returns the namespace for registration credentials that belongs to a system
// namespace: every "-system" becomes "-clusters-system".
func RegistrationNamespace(system string) string {
	if strings.Contains(system, "-system") {
		return strings.ReplaceAll(system, "-system", "-clusters-system")
	}
	return system + "-clusters-system"
}

// ObjectSet returns the id of the set of objects that a bundle owns on a member.
func ObjectSet(bundleID, agentScope string) string {
	prefix := []string{"default", bundleID}
	if strings.HasPrefix(bundleID, "fleet-agent") {
		prefix = []string{"fleet-agent-bootstrap"}
	}
	if agentScope != "" {
		prefix = append(prefix, agentScope)
	}
	return SafeConcat(prefix...)
}

// ObjectSetHash returns the value of the label objectset.rio.cattle.io/hash for a set id.
func ObjectSetHash(setID string) string {
	sum := sha1.Sum([]byte(setID))
	return hex.EncodeToString(sum[:])
}

// DefaultAgentID is the last part of the user name of a cluster's only agent; several need ids of their own.
const DefaultAgentID = "fleet-agent"

// AgentUser and AgentGroup name the identity in an agent's client certificate: the user of one agent,
// and the group of all agents of a cluster namespace on the hub.
func AgentUser(clusterNamespace, agentID string) string {
	return AgentGroup(clusterNamespace) + ":" + agentID
}

// AgentGroup is the group of the agents of one cluster namespace on the hub.
func AgentGroup(clusterNamespace string) string {
	return "system:fleet:" + clusterNamespace
}

// AgentsGroup is the group of all agents of all clusters.
const AgentsGroup = "system:fleet:agents"
